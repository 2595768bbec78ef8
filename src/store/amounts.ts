// What rows come to, added up so that the order makes no difference: whole numbers as they are, and what lies behind the point in
// millionths. So a sum of sums is the sum of their rows, to the last digit.
import { UNITS, type Unit, type Usage } from "../plugin/index.ts";
import type { Summand } from "./facts.ts";

const MILLION = 1_000_000;
const PLACES: { readonly [unit: string]: number } = Object.fromEntries(
  UNITS.map((unit, i) => [unit, i]),
);

/** Growing sums of one group. */
export class Amounts {
  calls = 0;
  unpriced = 0;
  estimated = 0;
  costNano = 0n;
  /** By the place of the unit; what was never reported is absent. */
  readonly #whole: (number | undefined)[] = [];
  readonly #parts: (number | undefined)[] = [];

  row(row: Pick<Summand, "kind" | "costNano" | "state" | "usage">): void {
    if (row.costNano !== null) this.costNano += row.costNano;
    // A correction is no call, and its usage is for the reader.
    if (row.kind === "adjust") return;
    this.calls++;
    if (row.costNano === null) this.unpriced++;
    if (row.state === "estimated") this.estimated++;
    for (const unit in row.usage) this.count(unit, row.usage[unit as Unit]);
  }

  add(other: Amounts): void {
    this.calls += other.calls;
    this.unpriced += other.unpriced;
    this.estimated += other.estimated;
    this.costNano += other.costNano;
    for (const [unit, whole, parts] of other.counts()) this.#put(PLACES[unit]!, whole, parts);
  }

  /** `whole` may be a fraction; `parts` are millionths on top of it. A unit that is not known here is passed over. */
  count(unit: string, whole: number | undefined, parts = 0): void {
    const place = PLACES[unit];
    if (place === undefined || whole === undefined) return;
    const floor = Math.floor(whole);
    this.#put(place, floor, parts + (floor === whole ? 0 : Math.round((whole - floor) * MILLION)));
  }

  /** Each unit that was reported: how much, and the millionths on top of it. */
  *counts(): Generator<readonly [unit: Unit, whole: number, parts: number], void> {
    for (const [i, unit] of UNITS.entries()) {
      const whole = this.#whole[i];
      if (whole !== undefined) yield [unit, whole, this.#parts[i] ?? 0];
    }
  }

  usage(): Usage {
    const usage: { [U in Unit]?: number } = {};
    for (const [unit, whole, parts] of this.counts())
      usage[unit] = parts === 0 ? whole : whole + parts / MILLION;
    return usage;
  }

  #put(place: number, whole: number, parts: number): void {
    const sum = (this.#parts[place] ?? 0) + parts;
    const more = Math.floor(sum / MILLION);
    this.#whole[place] = (this.#whole[place] ?? 0) + whole + more;
    if (sum !== 0) this.#parts[place] = sum - more * MILLION;
    else if (this.#parts[place] !== undefined) this.#parts[place] = 0;
  }
}
