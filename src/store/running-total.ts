// What rows come to, added up so that the order makes no difference: whole numbers as they are, and what lies behind the point in
// millionths. So a sum of sums is the sum of their rows, to the last digit.
import { UNITS, type Unit, type Usage } from "../plugin/index.ts";
import type { SummableRow } from "./row-dimensions.ts";

const MILLION = 1_000_000;
const UNIT_INDEX: { readonly [unit: string]: number } = Object.fromEntries(
  UNITS.map((unit, i) => [unit, i]),
);

/** Growing sums of one group. */
export class RunningTotal {
  calls = 0;
  unpriced = 0;
  estimated = 0;
  costNano = 0n;
  /** Units that were reported, by their places; how much of each, and the millionths on top of it. */
  readonly #unitIndexes: number[] = [];
  readonly #wholeUnits: number[] = [];
  readonly #millionths: number[] = [];

  addRow(row: Pick<SummableRow, "kind" | "costNano" | "state" | "usage">): void {
    if (row.costNano !== null) this.costNano += row.costNano;
    // A correction is no call, and its usage is for the reader.
    if (row.kind === "adjust") return;
    this.calls++;
    if (row.costNano === null) this.unpriced++;
    if (row.state === "estimated") this.estimated++;
    for (const unit in row.usage) this.addUnit(unit, row.usage[unit as Unit]);
  }

  add(other: RunningTotal): void {
    this.calls += other.calls;
    this.unpriced += other.unpriced;
    this.estimated += other.estimated;
    this.costNano += other.costNano;
    const units = other.#unitIndexes;
    for (let i = 0; i < units.length; i++)
      this.#addAt(units[i]!, other.#wholeUnits[i]!, other.#millionths[i]!);
  }

  /** `whole` may be a fraction; `parts` are millionths on top of it. A unit that is not known here is passed over. */
  addUnit(unit: string, whole: number | undefined, parts = 0): void {
    const place = UNIT_INDEX[unit];
    if (place === undefined || whole === undefined) return;
    const floor = Math.floor(whole);
    this.#addAt(
      place,
      floor,
      parts + (floor === whole ? 0 : Math.round((whole - floor) * MILLION)),
    );
  }

  /** Each unit that was reported: how much, and the millionths on top of it. In the order of units. */
  unitCounts(): (readonly [unit: Unit, whole: number, parts: number])[] {
    return this.#unitIndexes
      .map((place, i) => [place, i] as const)
      .sort(([a], [b]) => a - b)
      .map(([place, i]) => [UNITS[place]!, this.#wholeUnits[i]!, this.#millionths[i]!]);
  }

  usage(): Usage {
    const usage: { [U in Unit]?: number } = {};
    for (const [unit, whole, parts] of this.unitCounts())
      usage[unit] = parts === 0 ? whole : whole + parts / MILLION;
    return usage;
  }

  #addAt(place: number, whole: number, parts: number): void {
    let i = this.#unitIndexes.indexOf(place);
    if (i < 0) {
      i = this.#unitIndexes.push(place) - 1;
      this.#wholeUnits.push(0);
      this.#millionths.push(0);
    }
    const sum = this.#millionths[i]! + parts;
    const more = sum < MILLION ? 0 : Math.floor(sum / MILLION);
    this.#wholeUnits[i] = this.#wholeUnits[i]! + whole + more;
    this.#millionths[i] = sum - more * MILLION;
  }
}
