// Computes totals in the database. Each group is returned as one line, and shared code combines the
// groups to totals. Rollups provide whole days and half hours; rows provide the rest. Everything is
// one statement, so that it reads one snapshot.
import type { LedgerQuery, LedgerTotal } from "tollgate/plugin";
import {
  RunningTotal,
  createTotals,
  parseRollupGroups as textGroups,
  type RowDimensions,
  type TotalsQuery,
  UNIT_COLUMNS,
} from "tollgate/store";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import {
  MAX_DATE_MS,
  dayExpression,
  splitIntoSpans,
  type DayExpression,
  type TimeRange,
} from "./report-range.ts";
import {
  rollupTablesFor,
  lateralLookupSql,
  STATE_SQL,
  SUM_EXPRESSIONS,
  unitsSql,
  UNIT_SUMS_SQL,
} from "../schema/rollup-sql.ts";
import { SqlParameters, whereClause } from "./where-clause.ts";

type DimensionName = keyof RowDimensions;
/** Dimensions needed to assign a group to the requested grouping. */
const DIMENSIONS_BY_GROUPING: {
  readonly [D in TotalsQuery["by"][number]]: readonly DimensionName[];
} = {
  key: ["key"],
  account: ["account"],
  accounts: ["account"],
  label: ["labels"],
  labels: ["labels"],
  provider: ["provider"],
  model: ["provider", "model"],
  credential: ["credential"],
  frontend: ["frontend"],
  outcome: ["outcome"],
  price: ["price"],
  state: ["state"],
  day: [],
  hour: [],
};
/** Filters of a query that need a dimension. */
const FILTER_DIMENSIONS = [
  "key",
  "account",
  "label",
  "provider",
  "model",
  "credential",
  "frontend",
  "outcome",
] as const;

/**
 * Returns only the dimensions needed. Each dimension multiplies the number of groups. With all
 * dimensions, a month of calls has nearly as many groups as calls.
 */
function dimensionsFor({ by, zone: _, ...query }: TotalsQuery): readonly DimensionName[] {
  const groupings = [...by, ...FILTER_DIMENSIONS.filter((each) => query[each] !== undefined)];
  return [...new Set(groupings.flatMap((each) => DIMENSIONS_BY_GROUPING[each]))];
}

/** A table, and the condition on its rows. */
interface TableFilter {
  readonly table: string;
  readonly where: string;
}

/** The source of lines: rows or rollups. */
interface TotalsSource {
  readonly calls: TableFilter;
  /**
   * The same rows, joined with their usage by unit. The usage of an adjustment is informational and
   * is not summed.
   */
  readonly usage: TableFilter;
  readonly state: string;
  readonly sums: { readonly [K in keyof typeof SUM_EXPRESSIONS]: string };
  /** SQL for units that have their own columns. */
  readonly unitColumns: readonly string[];
  /** SQL for the time, if this source defines a separate expression. */
  readonly timeSql?: string;
}

export async function readTotals(
  sql: RunSql,
  schema: string,
  of: TotalsQuery,
): Promise<readonly LedgerTotal[]> {
  const { by, zone, ...query } = of;
  const facts = dimensionsFor(of);
  const values = new SqlParameters();
  const moment = by.includes("day") || by.includes("hour") ? dayExpression(of, values) : undefined;
  const { newest, sources } = totalsSources(of, schema, facts, values, moment);
  const selected = sources
    .flatMap((source) => sourceSelects(source, facts, source.timeSql ?? moment?.sql))
    .join("\nUNION ALL\n");
  const text = `${newest === undefined ? "" : `WITH newest AS MATERIALIZED (${newest})\n`}${selected}`;
  for (;;) {
    const pruned = await readCheckpointRollups(sql, schema, query);
    const lines = await sql({ text, values: values.all });
    // A compaction ran in the meantime. The rows that it removed would be missing or counted twice.
    if ((await readCheckpointRollupCount(sql, schema)) !== pruned.of) continue;
    const sums = createTotals(by, zone);
    for (const [named, amounts, at] of pruned.sums) sums.addGroup(named, amounts, at, query);
    for (const { dimensions: named, at, total } of parseGroups(lines, query.state ?? "exact"))
      sums.addGroup(named, total, at, query);
    return sums.totals();
  }
}

/** Returns the number of checkpoint rollups. */
async function readCheckpointRollupCount(sql: RunSql, schema: string): Promise<number> {
  const [row] = await sql({ text: `SELECT rollups FROM ${schema}.checkpoint` });
  return Number(row?.["rollups"] ?? 0);
}

/**
 * Reads the totals of compacted rows per quarter of an hour. A range that cuts a quarter counts it
 * by its start.
 */
async function readCheckpointRollups(
  sql: RunSql,
  schema: string,
  { attempt, upstreamId, state, from = -MAX_DATE_MS, to = MAX_DATE_MS }: LedgerQuery,
): Promise<{
  readonly of: number;
  readonly sums: readonly (readonly [RowDimensions, RunningTotal, at: number])[];
}> {
  const of = await readCheckpointRollupCount(sql, schema);
  if (of === 0 || attempt !== undefined || upstreamId !== undefined || state === "open")
    return { of, sums: [] };
  const rows = await sql({
    text: `SELECT quarter, text FROM ${schema}.checkpoint_rollup WHERE n <= $1 AND quarter >= $2 AND quarter < $3`,
    values: [of, Math.ceil(from), Math.ceil(to)],
  });
  return {
    of,
    sums: rows.flatMap(({ quarter, text }) =>
      [...textGroups(text!)].map(([facts, amounts]) => [facts, amounts, Number(quarter)] as const),
    ),
  };
}

function totalsSources(
  of: TotalsQuery,
  schema: string,
  facts: readonly DimensionName[],
  values: SqlParameters,
  moment: DayExpression | undefined,
): { readonly newest?: string; readonly sources: readonly TotalsSource[] } {
  const { by: _, zone: __, from, to, ...query } = of;
  const counted = () => `${settledRowsSql(query)} AND ${whereClause(query, schema, values)}`;
  const voids = query.state !== undefined;
  const depths = rollupTablesFor(facts, voids);
  const whole = splitIntoSpans(
    of,
    depths.map(({ span }) => span),
  );
  const all = whole.flat();
  const apart = (from: number | undefined, to: number | undefined): TotalsSource => {
    const time = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const condition = `${counted()} AND ${whereClause(time, schema, values)}`;
    const listed = moment?.lookup?.();
    return listed
      ? { ...rowSource(`${schema}.entry e ${listed.join}`, condition), timeSql: listed.is }
      : rowSource(`${schema}.entry e`, condition);
  };
  if (all.length === 0) return { sources: [apart(from, to)] };
  const during = ({ from, to }: TimeRange) =>
    `e.at >= ${values.add(from)}::bigint AND e.at < ${values.add(to)}::bigint`;
  const few = Object.values(query).some((each) => each !== undefined);
  const hull = {
    from: Math.min(...all.map((one) => one.from)),
    to: Math.max(...all.map((one) => one.to)),
  };
  const fresh = `SELECT node, n FROM ${schema}.batch WHERE seq IS NULL
    UNION ALL SELECT node, n FROM ${schema}.batch WHERE seq >= (SELECT up_to FROM ${schema}.rollup_position)`;
  // Planning a read of rows takes longer than reading these few rows, so they are read once in a
  // common table expression.
  const newest = `SELECT e.* FROM (${fresh}) f ${lateralLookupSql(`SELECT * FROM ${schema}.entry e WHERE e.node = f.node AND e.n = f.n`)} e
    WHERE ${counted()} AND ${during(hull)}`;
  const sources = [
    ...(hull.from === (from ?? -MAX_DATE_MS) ? [] : [apart(from, hull.from)]),
    ...(hull.to === (to ?? MAX_DATE_MS) ? [] : [apart(hull.to, to)]),
    rowSource("newest e", "true"),
    ...depths.flatMap((depth, i) =>
      whole[i]!.map((stretch) => {
        const summed = `${during(stretch)} AND ${whereClause(query, undefined, values)}${depth.includesVoid && !voids ? " AND e.state <> 'void'" : ""}`;
        return {
          calls: { table: `${schema}.${depth.table} e`, where: summed },
          usage: { table: unitsSql(schema, depth, few), where: summed },
          state: "e.state",
          sums: ROLLUP_SUM_EXPRESSIONS,
          unitColumns: UNIT_COLUMNS.map((unit) => `NULL::numeric AS ${unit}`),
        };
      }),
    ),
  ];
  return { newest, sources };
}

/** The same sums over rollups. */
const ROLLUP_SUM_EXPRESSIONS = {
  calls: "sum(e.calls)",
  unpriced: "sum(e.unpriced)",
  estimated: "sum(e.estimated)",
  nano: "sum(e.nano)",
  whole: "sum(u.whole)",
  parts: "sum(u.parts)",
} as const;

const rowSource = (table: string, condition: string): TotalsSource => ({
  calls: { table, where: condition },
  usage: {
    table: `${table}, json_each_text(e.usage::json) u(unit, value)`,
    where: `e.kind <> 2 AND e.usage IS NOT NULL AND ${condition}`,
  },
  state: STATE_SQL,
  sums: SUM_EXPRESSIONS,
  unitColumns: UNIT_SUMS_SQL,
});

/**
 * Returns the selects for a source: first the totals per group, then the usage per group and unit.
 */
function sourceSelects(
  { calls, usage, state, sums, unitColumns }: TotalsSource,
  facts: readonly string[],
  time: string | undefined,
): readonly string[] {
  const named = facts.map((name) => `${name === "state" ? state : `e.${name}`} AS ${name}`);
  if (time !== undefined) named.push(`${time} AS time`);
  const listed = named.map((column) => `${column}, `).join("");
  const groups = named.map((_, i) => i + 1);
  const grouped = (places: readonly number[]) =>
    places.length > 0 ? `GROUP BY ${places.join(", ")}` : "HAVING count(*) > 0";
  return [
    `SELECT ${listed}NULL::text AS unit, ${sums.calls} AS a, ${sums.nano} AS b, ${sums.unpriced} AS c, ${sums.estimated} AS d, ${unitColumns.join(", ")}
     FROM ${calls.table} WHERE ${calls.where} ${grouped(groups)}`,
    `SELECT ${listed}u.unit AS unit, ${sums.whole}, ${sums.parts}, NULL, NULL${", NULL".repeat(UNIT_COLUMNS.length)}
     FROM ${usage.table} WHERE ${usage.where} ${grouped([...groups, groups.length + 1])}`,
  ];
}

/**
 * Selects settles and adjustments. Selects open or void calls only if the query asks for that
 * state.
 */
const settledRowsSql = ({ state }: LedgerQuery): string =>
  state === undefined
    ? "e.kind <> 0 AND (e.kind = 2 OR e.state <> 'void')"
    : `e.kind = ${state === "open" ? 0 : 1}`;

interface Group {
  readonly dimensions: RowDimensions;
  readonly at: number;
  readonly total: RunningTotal;
}

const COUNT_COLUMNS = new Set<string>(["unit", "a", "b", "c", "d", ...UNIT_COLUMNS]);
const groupName = (line: Row): string =>
  JSON.stringify(Object.entries(line).filter(([column]) => !COUNT_COLUMNS.has(column)));

/**
 * Builds groups from lines. Each group has lines with the same name: one for the calls, and one per
 * unit of usage.
 */
function parseGroups(lines: readonly Row[], state: RowDimensions["state"]): readonly Group[] {
  const found = new Map<string, Group>();
  for (const line of lines) {
    const name = groupName(line);
    let group = found.get(name);
    if (!group) {
      group = {
        dimensions: parseDimensions(line, state),
        at: Number(line["time"] ?? 0),
        total: new RunningTotal(),
      };
      found.set(name, group);
    }
    const { total } = group;
    if (line["unit"] != null) {
      total.addUnit(line["unit"], Number(line["a"]), Number(line["b"]));
      continue;
    }
    total.calls += Number(line["a"]);
    total.costNano += BigInt(line["b"]!);
    total.unpriced += Number(line["c"]);
    total.estimated += Number(line["d"]);
    for (const unit of UNIT_COLUMNS) {
      const many = line[unit] ?? null;
      if (many !== null) total.addUnit(unit, Number(many));
    }
  }
  return [...found.values()];
}

/**
 * Parses the dimensions of a line.
 * @param state The state if the line has none.
 */
const parseDimensions = (row: Row, state: RowDimensions["state"]): RowDimensions => ({
  provider: row["provider"] ?? "",
  model: row["model"] ?? "",
  credential: row["credential"] ?? "",
  frontend: row["frontend"] ?? "",
  outcome: row["outcome"] ?? "",
  state: (row["state"] ?? state) as RowDimensions["state"],
  price: row["price"] ?? null,
  key: row["key"] ?? "",
  account: row["account"] ?? undefined,
  labels: row["labels"] ? (JSON.parse(row["labels"]) as RowDimensions["labels"]) : {},
});
