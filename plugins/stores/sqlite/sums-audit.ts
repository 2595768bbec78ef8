// Whether sums are those of their entries: of some days, hours and quarters all of it, and of all days together what they come to.
import { Amounts, createSubtotals, groupsOf, type LedgerRow, type Subtotals } from "tollgate/store";
import type { Wrong } from "./lookup-audit.ts";
import type { Sample, Samples } from "./sums.ts";
import { SPANS } from "./sums-file.ts";

const [DAY] = SPANS;
const startOf = (at: number, span: number): number => Math.floor(at / span) * span;

export class SumsAudit {
  readonly #samples: Samples;
  readonly #wrong: Wrong;
  /** What the entries of each sampled stretch come to. */
  readonly #found = new Map<string, Subtotals>();
  readonly #all = new Amounts();

  constructor(samples: Samples, wrong: Wrong) {
    this.#samples = samples;
    this.#wrong = wrong;
    for (const { span, start } of samples.some)
      this.#found.set(`${span} ${start}`, createSubtotals("labels"));
  }

  row(row: LedgerRow, seq: number): void {
    const { upTo, days } = this.#samples;
    if (seq > upTo || row.kind === "reserve") return;
    if (days.get(startOf(row.at, DAY)) !== undefined) this.#all.row(row);
    for (const span of SPANS) this.#found.get(`${span} ${startOf(row.at, span)}`)?.add(row);
  }

  problems(): void {
    for (const sample of this.#samples.some) if (!this.#holds(sample)) return this.#say(sample);
    const sum = new Amounts();
    for (const text of this.#samples.days.values())
      if (text !== undefined) for (const [, amounts] of groupsOf(text)) sum.add(amounts);
    const said = ({ calls, costNano, unpriced }: Amounts) => `${calls} ${costNano} ${unpriced}`;
    if (said(sum) !== said(this.#all)) this.#say({ start: undefined });
  }

  #holds({ depth, span, start, sums }: Sample): boolean {
    const own = createSubtotals(depth);
    own.take(this.#found.get(`${span} ${start}`)!);
    return own.text() === sums;
  }

  #say({ start }: { readonly start: number | undefined }): void {
    const when = start === undefined ? "" : `/${new Date(start).toISOString()}`;
    this.#wrong(
      `/sums${when}`,
      "Sums of entries were not what the entries come to. They are made anew.",
    );
  }
}
