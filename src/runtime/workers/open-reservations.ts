// What a worker has reserved and not settled, told by the batches that it sends. When it dies, this is what a restart
// would find open: settled as recovery does it, from the last progress or from the hold.
import type { StoreCommand, Settle, Store, CommandResult } from "../../plugin/store/store.ts";
import type { Usage } from "../../model/usage.ts";

interface OpenReservation {
  readonly at: number;
  readonly holdNano: bigint | null;
  /** False: reserved when its worker was gone already, so no byte of such a call has left. */
  readonly wasConfirmed: boolean;
  usage: Usage;
  costNano: bigint | null;
}

export interface OpenReservations {
  /** To the store, watched. */
  apply: Store["apply"];
  /** The owner is dead: what it left open, once everything that it had sent is durable. */
  settleAll(now: number): Promise<(Settle & { at: number })[]>;
  /** Calls under way. */
  readonly size: number;
}

export function trackReservations(apply: Store["apply"]): OpenReservations {
  const open = new Map<string, OpenReservation>();
  const under = new Set<Promise<unknown>>();
  let dead = false;

  function landed(command: StoreCommand, verdict: CommandResult): void {
    switch (command.do) {
      case "reserve":
        // A repeat changes nothing.
        if (!verdict.ok || open.has(command.attempt)) return;
        const { at, holdNano } = command;
        open.set(command.attempt, { at, holdNano, wasConfirmed: !dead, usage: {}, costNano: null });
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
      // One moment for all, not before any of it began: between them no time has passed, whatever the clock says.
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

/** As recovery settles a call of which no more is known. */
export const recoveredSettle = (
  attempt: string,
  call: Pick<OpenReservation, "holdNano" | "usage" | "costNano">,
  at: number,
): Settle & { at: number } => ({
  do: "settle",
  attempt,
  at,
  // Without a price there is no amount to estimate.
  state: call.costNano === null && call.holdNano === null ? "unpriced" : "estimated",
  usage: call.usage,
  costNano: call.costNano ?? call.holdNano,
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
