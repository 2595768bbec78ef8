// Rollups by day and half hour. Each numbered entry is added to the rollups of its time span
// exactly once. A position records the last such entry. A row with an earlier time is added to the
// span of that time.
import { UNIT_COLUMNS } from "tollgate/store";

export const ALL_DIMENSIONS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
  "state",
  "outcome",
  "price",
  "labels",
];
/** SQL for the state of a row. An adjustment is not a call, whatever its state is. */
export const STATE_SQL = "CASE WHEN e.kind = 2 THEN 'adjusted' ELSE e.state END";
export const DAY_MS = 86_400_000;
/** Dimensions that belong to the row and not to its terms. */
const ROW_DIMENSIONS = ["state", "outcome"];

/** Aggregates over rows `e` and their usage by unit `u`. */
export const SUM_EXPRESSIONS = {
  calls: "count(*) FILTER (WHERE e.kind <> 2)",
  unpriced: "count(*) FILTER (WHERE e.kind <> 2 AND e.cost IS NULL)",
  estimated: "count(*) FILTER (WHERE e.kind <> 2 AND e.state = 'estimated')",
  nano: "coalesce(sum(e.cost), 0)",
  whole: "sum(floor(u.value::numeric))",
  parts: "sum(round((u.value::numeric - floor(u.value::numeric)) * 1000000))",
} as const;

/**
 * Returns SQL for the start of the span that contains a time. The result is also correct for times
 * before 1970.
 */
export const floorToSpanSql = (at: string, span: number): string =>
  `${at} - mod(mod(${at}, ${span}) + ${span}, ${span})`;

/** Half an hour, in milliseconds. The offsets of nearly all time zones are multiples of it. */
export const HALF_HOUR_MS = 1_800_000;

/** A rollup table: some dimensions of rows, by time span. */
export interface RollupTable {
  readonly table: string;
  readonly span: number;
  readonly dimensions: readonly string[];
  /** Whether void calls are included. */
  readonly includesVoid?: true;
}

const KEY_DIMENSIONS = ["key", "account"];
const MODEL_DIMENSIONS = ["provider", "model"];
/**
 * All dimensions by day. The dimensions of nearly all reports are also summed by half hour, because
 * they have few groups.
 */
const ROLLUP_TABLES: readonly RollupTable[] = [
  { table: "rollup_day_key", span: DAY_MS, dimensions: KEY_DIMENSIONS },
  { table: "rollup_day_model", span: DAY_MS, dimensions: MODEL_DIMENSIONS },
  { table: "rollup_half_key", span: HALF_HOUR_MS, dimensions: KEY_DIMENSIONS },
  { table: "rollup_half_model", span: HALF_HOUR_MS, dimensions: MODEL_DIMENSIONS },
  { table: "rollup_day", span: DAY_MS, dimensions: ALL_DIMENSIONS, includesVoid: true },
];

/**
 * Returns, for each span, the smallest table with all requested dimensions. Longer spans come
 * first.
 */
export function rollupTablesFor(facts: readonly string[], voids: boolean): readonly RollupTable[] {
  const saying = ROLLUP_TABLES.filter(
    (depth) =>
      (!voids || depth.includesVoid) && facts.every((fact) => depth.dimensions.includes(fact)),
  );
  return [DAY_MS, HALF_HOUR_MS].flatMap(
    (span) => saying.find((depth) => depth.span === span) ?? [],
  );
}

const COUNT_COLUMNS = ["rows", "calls", "unpriced", "estimated", "nano"];
/** Names of the rollup tables, and of the tables with their usage by unit. */
export const ROLLUP_TABLE_NAMES = ROLLUP_TABLES.flatMap(({ table }) => [table, `${table}_unit`]);

/** Returns SQL for the hash that identifies a group by its dimensions. */
export const groupNameSql = (facts: readonly string[]): string =>
  `sha256(convert_to(json_build_array(${facts.join(", ")})::text, 'UTF8'))`;

/** Dimensions that can be null. */
const OPTIONAL_DIMENSIONS = new Set(["account", "price", "labels"]);
const columnDefinitions = (facts: readonly string[]): string =>
  facts
    .map(
      (fact) =>
        `${fact} text${fact === "key" ? ' COLLATE "C"' : ""}${OPTIONAL_DIMENSIONS.has(fact) ? "" : " NOT NULL"}, `,
    )
    .join("");

/**
 * Returns the dimensions that unit tables repeat. Tables with few dimensions repeat all, so that
 * reports need no join.
 */
const unitDimensions = ({ dimensions }: RollupTable): readonly string[] =>
  dimensions === ALL_DIMENSIONS ? [] : dimensions;

/** Returns the SQL for the rollup tables. */
export const rollupTablesSql = (schema: string): string =>
  ROLLUP_TABLES.map((depth) => {
    const { table, dimensions } = depth;
    const index = (of: string, its: readonly string[]) =>
      its.includes("key") ? `\nCREATE INDEX ${of}_of ON ${schema}.${of} (key, at);` : "";
    return `
CREATE TABLE ${schema}.${table} (
  at bigint NOT NULL, grp bytea NOT NULL, ${columnDefinitions(dimensions)}
  rows bigint NOT NULL, calls bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, nano numeric NOT NULL,
  PRIMARY KEY (at, grp));${index(table, dimensions)}
CREATE TABLE ${schema}.${table}_unit (
  at bigint NOT NULL, grp bytea NOT NULL, unit text NOT NULL, ${columnDefinitions(unitDimensions(depth))}whole numeric NOT NULL, parts numeric NOT NULL,
  PRIMARY KEY (at, grp, unit));${index(`${table}_unit`, unitDimensions(depth))}`;
  }).join("\n");

/**
 * Returns SQL for the usage `u` of groups `e`.
 * @param few Whether the query selects few groups. They are then looked up one by one; otherwise,
 *   both tables are scanned.
 */
export function unitsSql(schema: string, depth: RollupTable, few: boolean): string {
  const { table } = depth;
  if (unitDimensions(depth).length > 0)
    return `${schema}.${table}_unit e CROSS JOIN LATERAL (SELECT e.unit, e.whole, e.parts) u`;
  return few
    ? `${schema}.${table} e ${lateralLookupSql(`SELECT * FROM ${schema}.${table}_unit u WHERE u.at = e.at AND u.grp = e.grp`)} u`
    : `${schema}.${table} e JOIN ${schema}.${table}_unit u ON u.at = e.at AND u.grp = e.grp`;
}

/**
 * Returns SQL for an index lookup per row of the preceding table. Without OFFSET 0, PostgreSQL
 * would scan the whole table if it estimates a lower cost for that.
 */
export const lateralLookupSql = (select: string): string =>
  `CROSS JOIN LATERAL (${select} OFFSET 0)`;

/** Sums of the unit columns of rows `e`. */
export const UNIT_SUMS_SQL = UNIT_COLUMNS.map((unit) => `sum(e.${unit}) AS ${unit}`);

/**
 * Returns SQL that adds the entries of batches to all rollups, or subtracts them.
 * @param batches Condition on `b`.
 */
export const addToRollupsSql = (schema: string, batches: string, sign: "+" | "-"): string => `
  WITH fresh AS MATERIALIZED (
    SELECT e.*, ${floorToSpanSql("e.at", HALF_HOUR_MS)} AS half
      FROM ${schema}.batch b JOIN ${schema}.ledger_row e ON e.node = b.node AND e.n = b.n WHERE ${batches} AND e.kind <> 0),
  bare AS MATERIALIZED (
    SELECT e.half, e.node, e.terms, ${STATE_SQL} AS state, e.outcome, count(*) AS rows, ${SUM_EXPRESSIONS.calls} AS calls,
      ${SUM_EXPRESSIONS.unpriced} AS unpriced, ${SUM_EXPRESSIONS.estimated} AS estimated, ${SUM_EXPRESSIONS.nano} AS nano, ${UNIT_SUMS_SQL.join(", ")}
    FROM fresh e GROUP BY 1, 2, 3, 4, 5),
  facts AS MATERIALIZED (
    SELECT e.*, ${ALL_DIMENSIONS.filter((name) => !ROW_DIMENSIONS.includes(name))
      .map((name) => `t.${name}`)
      .join(", ")},
      ${groupNameSql(ALL_DIMENSIONS.map((name) => (ROW_DIMENSIONS.includes(name) ? `e.${name}` : `t.${name}`)))} AS name
    FROM bare e JOIN ${schema}.terms t ON t.node = e.node AND t.id = e.terms),
  sums AS MATERIALIZED (
    SELECT e.half, e.name, ${ALL_DIMENSIONS.map((name) => `min(e.${name}) AS ${name}`).join(", ")}, ${COUNT_COLUMNS.map((name) => `${sign} sum(e.${name}) AS ${name}`).join(", ")}
    FROM facts e GROUP BY 1, 2),
  units AS MATERIALIZED (
    SELECT u.half, u.name, u.unit, ${sign} sum(u.whole) AS whole, ${sign} sum(u.parts) AS parts FROM (
      SELECT f.half, f.name, u.unit, u.whole, 0 AS parts
        FROM facts f, LATERAL (VALUES ${UNIT_COLUMNS.map((unit) => `('${unit}', f.${unit})`).join(", ")}) u(unit, whole) WHERE u.whole IS NOT NULL
      UNION ALL
      SELECT f.half, f.name, u.key, ${SUM_EXPRESSIONS.whole}, ${SUM_EXPRESSIONS.parts}
        FROM fresh e JOIN facts f ON f.half = e.half AND f.node = e.node AND f.terms = e.terms AND f.state = e.state AND f.outcome = e.outcome,
          json_each_text(e.usage::json) u WHERE e.kind <> 2 AND e.usage IS NOT NULL GROUP BY 1, 2, 3) u
    GROUP BY 1, 2, 3)
  ${ROLLUP_TABLES.map((depth) => upsertRollupSql(schema, depth)).join("")}
  SELECT count(*) INTO strict many FROM sums;`;

/** Returns the part of the statement that updates one rollup table from `sums` and `units`. */
function upsertRollupSql(schema: string, depth: RollupTable): string {
  const { table, span, dimensions, includesVoid } = depth;
  const unitColumns = unitDimensions(depth);
  const beside = unitColumns.map((name) => `${name}, `).join("");
  const all = COUNT_COLUMNS.map((name) => `sum(x.${name})`).join(", ");
  const more = COUNT_COLUMNS.map((name) => `${name} = d.${name} + excluded.${name}`).join(", ");
  return `,
  of_${table} AS MATERIALIZED (
    SELECT x.*, ${floorToSpanSql("x.half", span)} AS at, ${dimensions === ALL_DIMENSIONS ? "x.name" : groupNameSql(dimensions)} AS grp
      FROM sums x${includesVoid ? "" : " WHERE x.state <> 'void'"}),
  in_${table} AS (
    INSERT INTO ${schema}.${table} AS d (at, grp, ${[...dimensions, ...COUNT_COLUMNS].join(", ")})
      SELECT x.at, x.grp, ${dimensions.map((name) => `min(x.${name})`).join(", ")}, ${all} FROM of_${table} x GROUP BY 1, 2
      ON CONFLICT (at, grp) DO UPDATE SET ${more}),
  in_${table}_unit AS (
    INSERT INTO ${schema}.${table}_unit AS d (at, grp, unit, ${beside}whole, parts)
      SELECT x.at, x.grp, u.unit, ${unitColumns.map((name) => `min(x.${name}), `).join("")}sum(u.whole), sum(u.parts)
      FROM of_${table} x JOIN units u ON u.half = x.half AND u.name = x.name GROUP BY 1, 2, 3
      ON CONFLICT (at, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts)`;
}

/** Returns SQL that deletes rollups without rows. */
export const deleteEmptyRollupsSql = (schema: string): string =>
  ROLLUP_TABLES.map(
    ({ table }) => `
  DELETE FROM ${schema}.${table}_unit u USING ${schema}.${table} d WHERE d.rows = 0 AND u.at = d.at AND u.grp = d.grp;
  DELETE FROM ${schema}.${table} WHERE rows = 0;`,
  ).join("");

/** Returns the SQL for the function that updates rollups. */
export const updateRollupsSql = (schema: string): string => `
CREATE FUNCTION ${schema}.update_rollups_1(p_most bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $sum$
DECLARE low bigint; high bigint; many bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true), set_config('jit', 'off', true);
  SELECT up_to INTO low FROM ${schema}.rollup_position FOR UPDATE SKIP LOCKED;
  IF low IS NULL THEN RETURN 0; END IF;
  SELECT max(seq + entries) INTO high FROM
    (SELECT b.seq, b.entries FROM ${schema}.batch b WHERE b.seq >= low AND b.entries > 0 ORDER BY b.seq LIMIT p_most) picked;
  IF high IS NULL THEN RETURN 0; END IF;
  ${addToRollupsSql(schema, "b.seq >= low AND b.seq < high", "+")}
  UPDATE ${schema}.rollup_position SET up_to = high;
  RETURN high - low;
END $sum$;
`;
