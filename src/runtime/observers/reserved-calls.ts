// The bills of a batch, with what the reserve of each call had said. Reserves and settles of all processes pass here, so what is
// kept of a call is kept from the one to the other, and only while an observer asks for bills.
import type { ChargedCall, ChargeRecord } from "../../plugin/observer.ts";
import type { StoreCommand, CommandResult } from "../../plugin/store/store.ts";
import { ProbingMap } from "../../lib/probing-map.ts";

const NO_LIMITS: ChargedCall["limits"] = Object.freeze([]);

/** As they came: most of a call is put together when its bill is told, and is soon forgotten then. */
interface ReservedCall {
  readonly command: CommandOf<"reserve">;
  readonly verdict: CommandResult & { ok: true };
}

export class ReservedCalls {
  readonly #open = new ProbingMap<ReservedCall>();

  /** Of a batch that is durable. */
  add(
    lines: ChargeRecord[],
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
