// Compares rollups with their entries: the sampled days, hours, and quarters in full, and the grand
// total over all days.
import {
  RunningTotal,
  createRollup,
  parseRollupGroups,
  type LedgerRow,
  type Rollup,
} from "tollgate/store";
import type { AddProblem } from "./lookup-verifier.ts";
import type { Sample, Samples } from "../sums/rollups.ts";
import { SPANS_MS } from "../sums/rollup-file.ts";

const [DAY] = SPANS_MS;
const spanStart = (at: number, span: number): number => Math.floor(at / span) * span;

export class RollupVerifier {
  readonly #samples: Samples;
  readonly #addProblem: AddProblem;
  /** Rollups computed from the entries of each sampled time span. */
  readonly #computedRollups = new Map<string, Rollup>();
  readonly #grandTotal = new RunningTotal();

  constructor(samples: Samples, wrong: AddProblem) {
    this.#samples = samples;
    this.#addProblem = wrong;
    for (const { span, start } of samples.rollups)
      this.#computedRollups.set(`${span} ${start}`, createRollup("labels"));
  }

  addRow(row: LedgerRow, seq: number): void {
    const { upTo, days } = this.#samples;
    if (seq > upTo || row.kind === "reserve") return;
    if (days.get(spanStart(row.at, DAY)) !== undefined) this.#grandTotal.addRow(row);
    for (const span of SPANS_MS)
      this.#computedRollups.get(`${span} ${spanStart(row.at, span)}`)?.add(row);
  }

  problems(): void {
    for (const sample of this.#samples.rollups)
      if (!this.#matchesSample(sample)) return this.#reportMismatch(sample);
    const sum = new RunningTotal();
    for (const text of this.#samples.days.values())
      if (text !== undefined) for (const [, amounts] of parseRollupGroups(text)) sum.add(amounts);
    const said = ({ calls, costNano, unpriced }: RunningTotal) =>
      `${calls} ${costNano} ${unpriced}`;
    if (said(sum) !== said(this.#grandTotal)) this.#reportMismatch({ start: undefined });
  }

  #matchesSample({ level, span, start, rollup }: Sample): boolean {
    const own = createRollup(level);
    own.merge(this.#computedRollups.get(`${span} ${start}`)!);
    return own.serialize() === rollup;
  }

  #reportMismatch({ start }: { readonly start: number | undefined }): void {
    const when = start === undefined ? "" : `/${new Date(start).toISOString()}`;
    this.#addProblem(
      `/rollups${when}`,
      "Rollups did not match the entries. They are being rebuilt.",
    );
  }
}
