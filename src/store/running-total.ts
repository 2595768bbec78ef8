// Totals that do not depend on the order of addition: integers as they are, and fractions in
// millionths. A sum of totals therefore equals the sum of their rows exactly.
import { UNITS, type Unit, type Usage } from "../plugin/index.ts";
import type { SummableRow } from "./row-dimensions.ts";

const MILLION = 1_000_000;
const UNIT_INDEX: { readonly [unit: string]: number } = Object.fromEntries(
  UNITS.map((unit, i) => [unit, i]),
);

/** The running total of one group. */
export class RunningTotal {
  calls = 0;
  unpriced = 0;
  estimated = 0;
  costNano = 0n;
  /** Reported units by index, with their whole count and additional millionths. */
  readonly #unitIndexes: number[] = [];
  readonly #wholeUnits: number[] = [];
  readonly #millionths: number[] = [];

  addRow(row: Pick<SummableRow, "kind" | "costNano" | "state" | "usage">): void {
    if (row.costNano !== null) this.costNano += row.costNano;
    // A correction is not a call, and its usage is informative.
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

  /**
   * Adds usage of a unit. `whole` may be a fraction, and `parts` are additional millionths. An
   * unknown unit is ignored.
   */
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

  /**
   * Returns the reported units with their whole count and additional millionths, in the order of
   * `UNITS`.
   */
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
