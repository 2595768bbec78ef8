// A rollup contains the exact totals of a time span, as compact text that can be parsed quickly.
// Rollups can be merged. The text does not depend on the order of the rows. Rollups summarize
// completed days and replace pruned rows.
import type { HeadersOut } from "../plugin/index.ts";
import { RunningTotal } from "./totals.ts";
import {
  dimensionsOf,
  ROLLUP_DIMENSIONS,
  type RollupLevel,
  type RowDimensions,
  type SummableRow,
} from "./row-dimensions.ts";

/** Totals by all dimensions of a level. */
export interface Rollup {
  readonly level: RollupLevel;
  /** Number of rows that were added, including those in merged rollups. */
  readonly rows: number;
  /** Number of groups. */
  readonly size: number;
  /** Adds a settle or a correction. */
  add(row: SummableRow): void;
  /** Adds a row with dimensions that are computed once for many rows. */
  addWithDimensions(
    facts: RowDimensions,
    row: Pick<SummableRow, "kind" | "costNano" | "state" | "usage">,
  ): void;
  /** Adds another rollup that has the same dimensions or more. */
  merge(other: Rollup): void;
  groups(): Iterable<readonly [RowDimensions, RunningTotal]>;
  /** Returns a text for `parseRollup`. */
  serialize(): string;
}

/** Creates an empty rollup. */
export const createRollup = (depth: RollupLevel): Rollup => new GroupedRollup(depth);

interface Group {
  readonly dimensions: RowDimensions;
  readonly total: RunningTotal;
}

/** Returns the same text for the same labels in any order. */
const encodeLabels = (labels: HeadersOut): string => {
  const names = Object.keys(labels).filter((name) => labels[name] !== undefined);
  return names.length === 0
    ? ""
    : JSON.stringify(names.sort().map((name) => [name, labels[name]!] as const));
};
const decodeLabels = (text: string): HeadersOut =>
  text === "" ? {} : (Object.fromEntries(JSON.parse(text) as [string, string][]) as HeadersOut);

/**
 * Returns the dimensions in the order of the serialized text. `null`: no value, or not a dimension
 * of this level.
 */
function dimensionValues(of: RowDimensions, depth: RollupLevel): (string | null)[] {
  const { calls, keys, labels } = ROLLUP_DIMENSIONS[depth];
  const call = (text: string | null) => (calls ? text : null);
  return [
    call(of.provider),
    call(of.model),
    call(of.credential),
    call(of.frontend),
    call(of.outcome),
    of.state,
    call(of.price),
    ...(keys ? [of.key, of.account ?? null] : []),
    ...(labels ? [encodeLabels(of.labels)] : []),
  ];
}
const dimensionCount = (depth: RollupLevel): number =>
  7 + (ROLLUP_DIMENSIONS[depth].keys ? 2 : 0) + (ROLLUP_DIMENSIONS[depth].labels ? 1 : 0);
const dimensionsFrom = (values: readonly (string | null)[]): RowDimensions => ({
  provider: values[0] ?? "",
  model: values[1] ?? "",
  credential: values[2] ?? "",
  frontend: values[3] ?? "",
  outcome: values[4] ?? "",
  state: values[5] as RowDimensions["state"],
  price: values[6] ?? null,
  key: values[7] ?? "",
  account: values[8] ?? undefined,
  labels: decodeLabels(values[9] ?? ""),
});

/** The dimensions that are kept at a level, and the ID of their group at that level. */
interface Projection {
  readonly id: string;
  readonly dimensions: RowDimensions;
}
/**
 * Cached projections by level, because the same dimensions are added repeatedly. They are stored on
 * the dimensions themselves, because a separate table would cost more than it saves.
 */
const PROJECTIONS = Symbol("projections");
type Projections = { [D in RollupLevel]: Projection | undefined };
type DimensionsWithProjections = RowDimensions & { [PROJECTIONS]?: Projections };
const NO_PROJECTIONS: Projections = {
  calls: undefined,
  holders: undefined,
  tags: undefined,
  keys: undefined,
  labels: undefined,
};

function projectDimensions(facts: DimensionsWithProjections, depth: RollupLevel): Projection {
  const known = (facts[PROJECTIONS] ??= { ...NO_PROJECTIONS });
  let projection = known[depth];
  if (!projection) {
    const values = dimensionValues(facts, depth);
    const dimensions: DimensionsWithProjections = dimensionsFrom(values);
    projection = known[depth] = { id: JSON.stringify(values), dimensions };
    // At its own level, a projection is its own projection.
    dimensions[PROJECTIONS] = { ...NO_PROJECTIONS, [depth]: projection };
  }
  return projection;
}

class GroupedRollup implements Rollup {
  readonly level: RollupLevel;
  rows = 0;
  readonly #groups = new Map<string, Group>();
  /** Groups by the identity of dimensions that were looked up before. */
  readonly #groupByDimensions = new Map<RowDimensions, Group>();

  constructor(depth: RollupLevel) {
    this.level = depth;
  }

  get size(): number {
    return this.#groups.size;
  }

  add(row: SummableRow): void {
    this.rows++;
    this.#groupFor(dimensionsOf(row)).total.addRow(row);
  }

  addWithDimensions(facts: RowDimensions, row: Parameters<RunningTotal["addRow"]>[0]): void {
    this.rows++;
    let group = this.#groupByDimensions.get(facts);
    if (!group) this.#groupByDimensions.set(facts, (group = this.#groupFor(facts)));
    group.total.addRow(row);
  }

  merge(other: Rollup): void {
    this.rows += other.rows;
    for (const [facts, amounts] of other.groups()) this.#groupFor(facts).total.add(amounts);
  }

  /** Adds a group that was read from a text. */
  addGroup(facts: RowDimensions, amounts: RunningTotal): void {
    this.#groupFor(facts).total.add(amounts);
  }

  *groups(): Generator<readonly [RowDimensions, RunningTotal], void> {
    for (const { dimensions, total } of this.#groups.values()) yield [dimensions, total];
  }

  serialize(): string {
    const strings = new Map<string, number>();
    const indexOf = (text: string | null): number => {
      if (text === null) return -1;
      let place = strings.get(text);
      if (place === undefined) strings.set(text, (place = strings.size));
      return place;
    };
    const groups = [...this.#groups]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { dimensions, total }]) => [
        ...dimensionValues(dimensions, this.level).map(indexOf),
        total.calls,
        total.unpriced,
        String(total.costNano),
        ...[...total.unitCounts()].flatMap(([unit, whole, parts]) => [indexOf(unit), whole, parts]),
      ]);
    const text: SerializedRollup = {
      level: this.level,
      rows: this.rows,
      groups,
      strings: [...strings.keys()],
    };
    return JSON.stringify(text);
  }

  #groupFor(facts: RowDimensions): Group {
    const { id, dimensions } = projectDimensions(facts, this.level);
    let group = this.#groups.get(id);
    if (!group) this.#groups.set(id, (group = { dimensions, total: new RunningTotal() }));
    return group;
  }
}

type SerializedItem = number | string;
interface SerializedRollup {
  readonly level: RollupLevel;
  readonly rows: number;
  readonly groups: readonly (readonly SerializedItem[])[];
  readonly strings: readonly string[];
}

/** Returns the groups of a text without building a rollup. Throws if the text is not a rollup. */
export function* parseRollupGroups(
  text: string,
): Generator<readonly [RowDimensions, RunningTotal], void> {
  const { level, groups, strings } = JSON.parse(text) as SerializedRollup;
  const many = dimensionCount(level);
  for (const group of groups) {
    const values: (string | null)[] = [];
    for (let i = 0; i < many; i++) values.push(strings[group[i] as number] ?? null);
    const amounts = new RunningTotal();
    const facts = dimensionsFrom(values);
    amounts.calls = group[many] as number;
    amounts.unpriced = group[many + 1] as number;
    amounts.costNano = BigInt(group[many + 2]!);
    if (facts.state === "estimated") amounts.estimated = amounts.calls;
    for (let i = many + 3; i < group.length; i += 3)
      amounts.addUnit(strings[group[i] as number]!, group[i + 1] as number, group[i + 2] as number);
    yield [facts, amounts];
  }
}

/** Parses a rollup. Throws if the text is not a rollup. */
export function parseRollup(text: string): Rollup {
  const { level, rows } = JSON.parse(text) as SerializedRollup;
  const sums = new GroupedRollup(level);
  for (const [facts, amounts] of parseRollupGroups(text)) sums.addGroup(facts, amounts);
  sums.rows = rows;
  return sums;
}
