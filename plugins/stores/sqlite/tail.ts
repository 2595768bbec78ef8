// What came after the sums' file, summed up in memory, commit by commit: pages that ask every few seconds have each entry read once. It is
// begun anew when the file has taken it in.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { createSubtotals, type Subtotals, type TotalsQuery } from "tollgate/store";
import { KnownFacts } from "./known-facts.ts";
import { type Linked, LINKED_PAGE, linkedAfter } from "./linked.ts";
import { counted } from "./stored.ts";
import { type TakenInto, wholeIn } from "./summed.ts";
import { QUARTER, quarterOf, type UpTo } from "./sums-file.ts";

/** How long it goes on before it gives way, in milliseconds. */
const STRIDE_MS = 4;

/** What of it a report took. */
export interface TakenTail {
  /** The last entry in it. */
  readonly upTo: number;
  /** Rows of these quarters of an hour are to be read: what is asked for cuts them. */
  readonly quarters: ReadonlySet<number>;
}

export class Tail {
  readonly #next: StatementSync;
  readonly #facts = new KnownFacts();
  #quarters = new Map<number, Subtotals>();
  /** The last entry that is not in it. */
  #after = -1;
  #last = 0;
  #segment = 0;
  #under: Promise<void> | undefined;

  constructor(ledger: DatabaseSync) {
    this.#next = linkedAfter(ledger);
  }

  /** Adds what a report may have of it; undefined: it is of other sums by now. `gone`: entries up to this one were pruned. */
  async take(
    upTo: UpTo,
    gone: number,
    asked: TotalsQuery,
    { sums: into, speak }: TakenInto,
  ): Promise<TakenTail | undefined> {
    // All that ask meanwhile wait for one reading, so it ends for none of them alone.
    await (this.#under ??= this.#reach(upTo, gone).finally(() => (this.#under = undefined)));
    if (this.#after !== Math.max(upTo.seq, gone)) return undefined;
    const { from = -Infinity, to = Infinity } = asked;
    const isWhole = wholeIn(asked);
    const quarters = new Set<number>();
    for (const [start, sums] of this.#quarters) {
      if (start >= to || start + QUARTER <= from) continue;
      if (!isWhole(start, QUARTER)) quarters.add(start);
      else
        for (const [facts, amounts] of sums.groups())
          into.take(speak(facts), amounts, start, asked);
    }
    return { upTo: this.#last, quarters };
  }

  async #reach(upTo: UpTo, gone: number): Promise<void> {
    const after = Math.max(upTo.seq, gone);
    if (this.#after !== after) {
      this.#quarters = new Map();
      this.#after = this.#last = after;
      this.#segment = upTo.segment;
    }
    for (let began = performance.now(); ;) {
      const page = this.#next.all(this.#segment, gone) as unknown as Linked[];
      for (const one of page) this.#add(one);
      if (page.length < LINKED_PAGE) return;
      if (performance.now() - began < STRIDE_MS) continue;
      await setImmediate();
      began = performance.now();
    }
  }

  #add(one: Linked): void {
    counted(one, (row, said, terms) => {
      const quarter = quarterOf(row.at);
      let sums = this.#quarters.get(quarter);
      if (!sums) this.#quarters.set(quarter, (sums = createSubtotals("labels")));
      sums.addTo(this.#facts.of(row, said, terms), row);
    });
    this.#segment = one.id;
    this.#last = one.last;
  }
}
