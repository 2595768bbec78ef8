// What days came to, added up once: entries that have their numbers are added to the sums of their day, each once, up to a mark. A row whose time is
// past goes where it belongs.

import { UNIT_COLUMNS } from "../rows/columns.ts";

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
/** A correction is no call, whatever its state. */
export const STATE_SQL = "CASE WHEN e.kind = 2 THEN 'adjusted' ELSE e.state END";
export const DAY_MS = 86_400_000;
/** Facts that are a row's own, and not its terms'. */
const ROW_DIMENSIONS = ["state", "outcome"];

/** Sums over rows `e`, and over what `u` says that each has used. */
export const SUM_EXPRESSIONS = {
  calls: "count(*) FILTER (WHERE e.kind <> 2)",
  unpriced: "count(*) FILTER (WHERE e.kind <> 2 AND e.cost IS NULL)",
  estimated: "count(*) FILTER (WHERE e.kind <> 2 AND e.state = 'estimated')",
  nano: "coalesce(sum(e.cost), 0)",
  whole: "sum(floor(u.value::numeric))",
  parts: "sum(round((u.value::numeric - floor(u.value::numeric)) * 1000000))",
} as const;

/** The moment at which the span began that a moment is in, before 1970 too. */
export const floorToSpanSql = (at: string, span: number): string =>
  `${at} - mod(mod(${at}, ${span}) + ${span}, ${span})`;

/** Half an hour: of nearly each zone it is a whole number of these that days and hours are off. */
export const HALF_HOUR_MS = 1_800_000;

/** Some of a row's facts, added up by spans of time. */
export interface RollupTable {
  readonly table: string;
  readonly span: number;
  readonly dimensions: readonly string[];
  /** Void calls are in it. */
  readonly includesVoid?: true;
}

const KEY_DIMENSIONS = ["key", "account"];
const MODEL_DIMENSIONS = ["provider", "model"];
/** All facts by days; and by half hours too, those that nearly each report is by: their sums are few beside those of all facts. */
const ROLLUP_TABLES: readonly RollupTable[] = [
  { table: "rollup_day_key", span: DAY_MS, dimensions: KEY_DIMENSIONS },
  { table: "rollup_day_model", span: DAY_MS, dimensions: MODEL_DIMENSIONS },
  { table: "rollup_half_key", span: HALF_HOUR_MS, dimensions: KEY_DIMENSIONS },
  { table: "rollup_half_model", span: HALF_HOUR_MS, dimensions: MODEL_DIMENSIONS },
  { table: "rollup_day", span: DAY_MS, dimensions: ALL_DIMENSIONS, includesVoid: true },
];

/** Of those that say all that is asked, the one that says the least of each span; longer spans first. */
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
/** Tables of sums, and those of what was used beside each. */
export const ROLLUP_TABLE_NAMES = ROLLUP_TABLES.flatMap(({ table }) => [table, `${table}_unit`]);

/** The name of a group: of its facts. */
export const groupNameSql = (facts: readonly string[]): string =>
  `sha256(convert_to(json_build_array(${facts.join(", ")})::text, 'UTF8'))`;

/** Facts that a call may lack. */
const OPTIONAL_DIMENSIONS = new Set(["account", "price", "labels"]);
const columnDefinitions = (facts: readonly string[]): string =>
  facts
    .map(
      (fact) =>
        `${fact} text${fact === "key" ? ' COLLATE "C"' : ""}${OPTIONAL_DIMENSIONS.has(fact) ? "" : " NOT NULL"}, `,
    )
    .join("");

/** What units say beside the name of their group: of a few facts all, so that they need no group to be read. */
const unitDimensions = ({ dimensions }: RollupTable): readonly string[] =>
  dimensions === ALL_DIMENSIONS ? [] : dimensions;

/** `s`: the schema. */
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

/** What was used of those groups `e` that are meant, as `u`. `few`: of all groups it is some, each looked up by itself; else both are read from end to end. */
export function unitsSql(schema: string, depth: RollupTable, few: boolean): string {
  const { table } = depth;
  if (unitDimensions(depth).length > 0)
    return `${schema}.${table}_unit e CROSS JOIN LATERAL (SELECT e.unit, e.whole, e.parts) u`;
  return few
    ? `${schema}.${table} e ${lateralLookupSql(`SELECT * FROM ${schema}.${table}_unit u WHERE u.at = e.at AND u.grp = e.grp`)} u`
    : `${schema}.${table} e JOIN ${schema}.${table}_unit u ON u.at = e.at AND u.grp = e.grp`;
}

/** For each of what stands before it, by an index. PostgreSQL would read all that there is where it takes that for cheaper: not with an offset. */
export const lateralLookupSql = (select: string): string =>
  `CROSS JOIN LATERAL (${select} OFFSET 0)`;

/** What rows `e` have used of units that have columns. */
export const UNIT_SUMS_SQL = UNIT_COLUMNS.map((unit) => `sum(e.${unit}) AS ${unit}`);

/** Entries of these batches are added to all sums that they are in, or taken from them. `batches`: a condition on `b`. */
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

/** One of a statement's parts: what `sums` and `units` come to at this depth. */
function upsertRollupSql(schema: string, depth: RollupTable): string {
  const { table, span, dimensions, includesVoid } = depth;
  const said = unitDimensions(depth);
  const beside = said.map((name) => `${name}, `).join("");
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
      SELECT x.at, x.grp, u.unit, ${said.map((name) => `min(x.${name}), `).join("")}sum(u.whole), sum(u.parts)
      FROM of_${table} x JOIN units u ON u.half = x.half AND u.name = x.name GROUP BY 1, 2, 3
      ON CONFLICT (at, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts)`;
}

/** Sums of nothing go. */
export const deleteEmptyRollupsSql = (schema: string): string =>
  ROLLUP_TABLES.map(
    ({ table }) => `
  DELETE FROM ${schema}.${table}_unit u USING ${schema}.${table} d WHERE d.rows = 0 AND u.at = d.at AND u.grp = d.grp;
  DELETE FROM ${schema}.${table} WHERE rows = 0;`,
  ).join("");

/** `s`: the schema. */
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
