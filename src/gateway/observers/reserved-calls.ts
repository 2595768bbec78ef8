// The bills of a batch, with what the reserve of each call had said. Reserves and settles of all processes pass here, so what is
// kept of a call is kept from the one to the other, and only while an observer asks for bills.
import type { LedgerCall, LedgerLine } from "../../plugin/observer.ts";
import type { StoreCommand, Verdict } from "../../plugin/store.ts";

const NO_LIMITS: LedgerCall["limits"] = Object.freeze([]);

export class ReservedCalls {
  readonly #open = new Map<string, LedgerCall>();

  /** Of a batch that is durable. */
  lines(batch: readonly StoreCommand[], verdicts: readonly Verdict[]): readonly LedgerLine[] {
    const lines: LedgerLine[] = [];
    for (let i = 0; i < batch.length; i++) {
      const command = batch[i]!;
      const verdict = verdicts[i];
      if (!verdict?.ok) continue;
      if (command.do === "reserve") this.#reserved(command, verdict);
      else if (command.do === "settle") lines.push(this.#settled(command));
      else if (command.do === "adjust") lines.push(adjusted(command));
    }
    return lines;
  }

  #reserved(
    { attempt, request, n, key, account, labels, target, privacy, asked }: CommandOf<"reserve">,
    { limits = NO_LIMITS }: Verdict & { ok: true },
  ): void {
    this.#open.set(attempt, { request, n, key, account, labels, target, privacy, asked, limits });
  }

  #settled(command: CommandOf<"settle">): LedgerLine {
    const { at, attempt, state, usage, costNano, outcome, finish, ms } = command;
    const call = this.#open.get(attempt);
    this.#open.delete(attempt);
    return { type: "settle", at, attempt, call, state, usage, costNano, outcome, finish, ms };
  }
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
