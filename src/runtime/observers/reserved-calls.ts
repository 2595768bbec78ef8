// Builds the charge records of a batch from the settles and the earlier reserves of the same calls.
// Reserves and settles of all processes are processed here. A call is kept from its reserve to its
// settle, and only while an observer requests charges.
import type { ChargedCall, ChargeRecord } from "../../plugin/observer.ts";
import type { StoreCommand, CommandResult } from "../../plugin/store/store.ts";
import { ProbingMap } from "../../lib/probing-map.ts";

const NO_LIMITS: ChargedCall["limits"] = Object.freeze([]);

/**
 * A reserve and its result, kept unprocessed. Most of a call's data is assembled when its charge is
 * reported, and is short-lived.
 */
interface ReservedCall {
  readonly command: CommandOf<"reserve">;
  readonly verdict: CommandResult & { ok: true };
}

export class ReservedCalls {
  readonly #open = new ProbingMap<ReservedCall>();

  /** Adds the charges of a durable batch. */
  add(
    lines: { push(charge: ChargeRecord): unknown },
    batch: readonly StoreCommand[],
    results: readonly CommandResult[],
  ): void {
    for (let i = 0; i < batch.length; i++) {
      const command = batch[i]!;
      const verdict = results[i];
      if (!verdict?.ok) continue;
      if (command.do === "reserve") this.#open.set(command.attempt, { command, verdict });
      else if (command.do === "settle") lines.push(this.#toCharge(command));
      else if (command.do === "adjust") lines.push(toAdjustment(command));
    }
  }

  #toCharge(command: CommandOf<"settle">): ChargeRecord {
    const { at, attempt, state, usage, costNano, outcome, finish, ms } = command;
    const reserved = this.#open.remove(attempt);
    const call = reserved && toChargedCall(reserved);
    return { type: "settle", at, attempt, call, state, usage, costNano, outcome, finish, ms };
  }
}

function toChargedCall({ command, verdict }: ReservedCall): ChargedCall {
  const { request, number, key, account, labels, target, privacy, clientRequest } = command;
  const { limits = NO_LIMITS } = verdict;
  return { request, number, key, account, labels, target, privacy, clientRequest, limits };
}

type CommandOf<D extends StoreCommand["do"]> = StoreCommand & { do: D };

const toAdjustment = ({ at, attempt, costNano, reason }: CommandOf<"adjust">): ChargeRecord => ({
  type: "adjust",
  at,
  attempt,
  call: undefined,
  state: "exact",
  usage: {},
  costNano,
  outcome: reason,
});
