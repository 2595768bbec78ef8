// Tracks the calls that a worker has reserved and not settled, based on the batches that it sends.
// If the worker dies, these calls are settled in the same way as by recovery after a restart: with
// the last progress, or with the reserved amount.
import type { StoreCommand, Settle, Store, CommandResult } from "../../plugin/store/store.ts";
import { CLIENT_CREDENTIAL, type Usage } from "../../model/usage.ts";

interface OpenReservation {
  readonly at: number;
  /** Whether the client pays the provider with its own credential. */
  readonly isExternal: boolean;
  readonly holdNano: bigint | null;
  /**
   * Whether the reserve was confirmed while its worker was alive. If not, no byte of the call was
   * sent.
   */
  readonly wasConfirmed: boolean;
  usage: Usage;
  costNano: bigint | null;
}

export interface OpenReservations {
  /** Passes a batch to the store and tracks its calls. */
  apply: Store["apply"];
  /**
   * Returns the settles for the open calls of a dead worker. Call it after everything that the
   * worker sent is durable.
   */
  settleAll(now: number): Promise<(Settle & { at: number })[]>;
  /** Number of open calls. */
  readonly size: number;
}

export function trackReservations(apply: Store["apply"]): OpenReservations {
  const open = new Map<string, OpenReservation>();
  const under = new Set<Promise<unknown>>();
  let dead = false;

  function landed(command: StoreCommand, verdict: CommandResult): void {
    switch (command.do) {
      case "reserve":
        // A job outlives the worker that created it.
        if (command.job?.attempt === command.attempt) return;
        // A repeated command changes nothing.
        if (!verdict.ok || open.has(command.attempt)) return;
        const { at, holdNano, target } = command;
        open.set(command.attempt, {
          at,
          isExternal: target.credential === CLIENT_CREDENTIAL,
          holdNano,
          wasConfirmed: !dead,
          usage: {},
          costNano: null,
        });
        return;
      case "progress":
        const call = open.get(command.attempt);
        if (call) {
          call.usage = command.usage;
          call.costNano = command.costNano ?? null;
        }
        return;
      case "settle":
        open.delete(command.attempt);
    }
  }

  async function watched(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> {
    const verdicts = await apply(batch);
    for (let i = 0; i < batch.length; i++) landed(batch[i]!, verdicts[i]!);
    return verdicts;
  }

  return {
    apply(batch) {
      const verdicts = watched(batch);
      under.add(verdicts);
      const forget = () => under.delete(verdicts);
      verdicts.then(forget, forget);
      return verdicts;
    },
    async settleAll(now) {
      dead = true;
      await Promise.allSettled(under);
      // One time is used for all calls. It is not before the start of any of them, even if the
      // clock was set back.
      const at = [...open.values()].reduce((latest, call) => Math.max(latest, call.at), now);
      return [...open].map(([attempt, call]) =>
        call.wasConfirmed ? recoveredSettle(attempt, call, at) : voidSettle(attempt, at),
      );
    },
    get size() {
      return open.size;
    },
  };
}

/** Returns the settle that recovery writes for a call. */
export const recoveredSettle = (
  attempt: string,
  call: Pick<OpenReservation, "isExternal" | "holdNano" | "usage" | "costNano">,
  at: number,
): Settle & { at: number } => ({
  do: "settle",
  attempt,
  at,
  // Without a price, there is no amount to estimate.
  state: call.isExternal
    ? "external"
    : call.costNano === null && call.holdNano === null
      ? "unpriced"
      : "estimated",
  usage: call.usage,
  costNano: call.isExternal ? 0n : (call.costNano ?? call.holdNano),
  outcome: "recovered",
});

const voidSettle = (attempt: string, at: number): Settle & { at: number } => ({
  do: "settle",
  attempt,
  at,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});
