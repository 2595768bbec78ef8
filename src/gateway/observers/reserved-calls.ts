// The bills of a batch, with what the reserve of each call had said. Reserves and settles of all processes pass here, so what is
// kept of a call is kept from the one to the other, and only while an observer asks for bills.
import type { LedgerCall, LedgerLine } from "../../plugin/observer.ts";
import type { StoreCommand, Verdict } from "../../plugin/store.ts";
import { Passing } from "../../lib/passing.ts";

const NO_LIMITS: LedgerCall["limits"] = Object.freeze([]);

/** As they came: most of a call is put together when its bill is told, and is soon forgotten then. */
interface Reserved {
  readonly command: CommandOf<"reserve">;
  readonly verdict: Verdict & { ok: true };
}

export class ReservedCalls {
  readonly #open = new Passing<Reserved>();

  /** Of a batch that is durable. */
  add(lines: LedgerLine[], batch: readonly StoreCommand[], verdicts: readonly Verdict[]): void {
    for (let i = 0; i < batch.length; i++) {
      const command = batch[i]!;
      const verdict = verdicts[i];
      if (!verdict?.ok) continue;
      if (command.do === "reserve") this.#open.put(command.attempt, { command, verdict });
      else if (command.do === "settle") lines.push(this.#settled(command));
      else if (command.do === "adjust") lines.push(adjusted(command));
    }
  }

  #settled(command: CommandOf<"settle">): LedgerLine {
    const { at, attempt, state, usage, costNano, outcome, finish, ms } = command;
    const reserved = this.#open.take(attempt);
    const call = reserved && callOf(reserved);
    return { type: "settle", at, attempt, call, state, usage, costNano, outcome, finish, ms };
  }
}

function callOf({ command, verdict }: Reserved): LedgerCall {
  const { request, n, key, account, labels, target, privacy, asked } = command;
  const { limits = NO_LIMITS } = verdict;
  return { request, n, key, account, labels, target, privacy, asked, limits };
}

type CommandOf<D extends StoreCommand["do"]> = StoreCommand & { do: D };

const adjusted = ({ at, attempt, costNano, reason }: CommandOf<"adjust">): LedgerLine => ({
  type: "adjust",
  at,
  attempt,
  call: undefined,
  state: "exact",
  usage: {},
  costNano,
  outcome: reason,
});
