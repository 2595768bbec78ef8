// Totals of calls, from rows or from rollups. Both sources give exactly the same result. Void calls
// cost nothing and are counted only if a query requests them.
import {
  type HeadersOut,
  type LedgerQuery,
  type Store,
  type LedgerTotal,
  LEDGER_UNITS,
  type LedgerUnit,
  type Usage,
} from "../plugin/index.ts";
import {
  isSettledGroup,
  dimensionsOf,
  matchesDimensions,
  type RowDimensions,
  type SummableRow,
} from "./row-dimensions.ts";
import { zoneClock } from "../lib/time/time-zone.ts";

export { isSettledRow, type SummableRow } from "./row-dimensions.ts";

/** Query of a store's `sumEntries`. */
export type TotalsQuery = Parameters<Store["sumEntries"]>[0];

/** Totals that are being computed. */
export interface Totals {
  /** Adds a row for which `isSettledRow` is true. */
  add(row: SummableRow): void;
  /**
   * Adds the totals of many rows if they match the query. `at`: a time within the day and hour that
   * contain all these rows.
   */
  addGroup(facts: RowDimensions, amounts: RunningTotal, at: number, query: LedgerQuery): void;
  totals(): readonly LedgerTotal[];
}

/**
 * Creates empty totals by days and hours of `zone`. Default: UTC. Throws a RangeError if the zone
 * does not exist.
 */
export function createTotals(by: TotalsQuery["by"], zone?: string): Totals {
  const groups = new Map<string, { by: HeadersOut; amounts: RunningTotal }>();
  const namesOf = createGroupNamer(by, zone);
  function group(names: HeadersOut, order: HeadersOut): RunningTotal {
    const id = JSON.stringify(order);
    let found = groups.get(id);
    if (!found) groups.set(id, (found = { by: names, amounts: new RunningTotal() }));
    return found.amounts;
  }
  return {
    add(row) {
      for (const [names, order] of namesOf(dimensionsOf(row), row.at))
        group(names, order).addRow(row);
    },
    addGroup(facts, amounts, at, query) {
      if (!isSettledGroup(facts, query.state) || !matchesDimensions(facts, query)) return;
      for (const [names, order] of namesOf(facts, at)) group(names, order).add(amounts);
    },
    totals: () =>
      [...groups]
        .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
        .map(([, { by: names, amounts }]) => ({
          by: names,
          calls: amounts.calls,
          usage: amounts.usage(),
          costNano: amounts.costNano,
          unpriced: amounts.unpriced,
          estimated: amounts.estimated,
        })),
  };
}

type Dimension = TotalsQuery["by"][number];
type DimensionReader = (of: RowDimensions) => string;

/** Dimensions in which a call belongs to one group. */
const SINGLE_DIMENSIONS: {
  readonly [D in Exclude<Dimension, "label" | "account" | "day" | "hour">]: DimensionReader;
} = {
  key: (of) => of.key,
  accounts: (of) => of.account ?? "",
  provider: (of) => of.provider,
  model: (of) => `${of.provider}/${of.model}`,
  credential: (of) => of.credential,
  frontend: (of) => of.frontend,
  outcome: (of) => of.outcome,
  state: (of) => of.state,
  price: (of) => of.price ?? "",
  labels: ({ labels }) => JSON.stringify(labels, Object.keys(labels).sort()),
};

type GroupName = readonly [names: HeadersOut, order: HeadersOut];

/**
 * Creates a function that returns the groups of a row. A call with several labels is in the group
 * of each label. It is also in the group of each account from the outermost to its own.
 */
function createGroupNamer(by: TotalsQuery["by"], zone: string | undefined) {
  const clock = zoneClock(zone);
  const accounts = by.includes("account");
  const labels = by.includes("label");
  const [days, hours] = [by.includes("day"), by.includes("hour")];
  const timed = days || hours;
  // Many calls have the same time, because daily totals use the start of the day.
  let last: { at: number; day: string; hour: string; start: string } | undefined;
  const timesOf = (at: number) => {
    if (last?.at === at) return last;
    const start = hours ? new Date(clock.hourStart(at)).toISOString() : "";
    last = { at, day: days ? clock.day(at) : "", hour: hours ? clock.hour(at) : "", start };
    return last;
  };
  return (of: RowDimensions, at: number): readonly GroupName[] => {
    const names: Record<string, string> = {};
    const times = timed ? timesOf(at) : undefined;
    for (const dimension of by)
      if (dimension === "day" || dimension === "hour") names[dimension] = times![dimension];
      else if (dimension !== "label" && dimension !== "account")
        names[dimension] = SINGLE_DIMENSIONS[dimension](of);
    // An hour that occurs twice has two names, and the later name would sort first.
    const order = hours ? { ...names, hour: times!.start } : names;
    if (!accounts && !labels) return [[names, order]];
    const more = expandGroups(of, accounts, labels);
    return more.map((each): GroupName => [
      { ...names, ...each },
      { ...order, ...each },
    ]);
  };
}

function expandGroups({ account, labels }: RowDimensions, accounts: boolean, labelled: boolean) {
  const groups: HeadersOut[] = accounts
    ? accountPaths(account).map((path) => ({ account: path }))
    : [{}];
  if (!labelled) return groups;
  const definedLabels = Object.entries(labels).filter(([, value]) => value !== undefined);
  const each =
    definedLabels.length === 0 ? [""] : definedLabels.map(([name, value]) => `${name}=${value}`);
  return groups.flatMap((group) => each.map((label) => ({ ...group, label })));
}

/** "a/b" → "a", "a/b". */
function accountPaths(account = ""): string[] {
  const names = account.split("/");
  return names.map((_, i) => names.slice(0, i + 1).join("/"));
}

// Totals that do not depend on the order of addition: integers are added exactly, and fractions in
// millionths. A sum of totals therefore equals the sum of their rows exactly.

const MILLION = 1_000_000;
const UNIT_INDEX: { readonly [unit: string]: number } = Object.fromEntries(
  LEDGER_UNITS.map((unit, i) => [unit, i]),
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
    for (const unit in row.usage) this.addUnit(unit, row.usage[unit as LedgerUnit]);
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
   * `LEDGER_UNITS`.
   */
  unitCounts(): (readonly [unit: LedgerUnit, whole: number, parts: number])[] {
    return this.#unitIndexes
      .map((place, i) => [place, i] as const)
      .sort(([a], [b]) => a - b)
      .map(([place, i]) => [LEDGER_UNITS[place]!, this.#wholeUnits[i]!, this.#millionths[i]!]);
  }

  usage(): Usage {
    const usage: { [U in LedgerUnit]?: number } = {};
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
