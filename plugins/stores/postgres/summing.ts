// What days came to, added up once: entries that have their numbers are added to the sums of their day, each once, up to a mark. A row whose time is
// past goes where it belongs.

import { COUNTED } from "./columns.ts";

export const GROUP = [
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
export const STATE = "CASE WHEN e.kind = 2 THEN 'adjusted' ELSE e.state END";
export const DAY_MS = 86_400_000;
/** Facts that are a row's own, and not its terms'. */
const OWN = ["state", "outcome"];

/** Sums over rows `e`, and over what `u` says that each has used. */
export const SUMS = {
  calls: "count(*) FILTER (WHERE e.kind <> 2)",
  unpriced: "count(*) FILTER (WHERE e.kind <> 2 AND e.cost IS NULL)",
  estimated: "count(*) FILTER (WHERE e.kind <> 2 AND e.state = 'estimated')",
  nano: "coalesce(sum(e.cost), 0)",
  whole: "sum(floor(u.value::numeric))",
  parts: "sum(round((u.value::numeric - floor(u.value::numeric)) * 1000000))",
} as const;

/** The moment at which the span began that a moment is in, before 1970 too. */
export const floored = (at: string, span: number): string =>
  `${at} - mod(mod(${at}, ${span}) + ${span}, ${span})`;

/** Half an hour: of nearly each zone it is a whole number of these that days and hours are off. */
export const HALF_MS = 1_800_000;

/** Some of a row's facts, added up by spans of time. */
export interface Depth {
  readonly table: string;
  readonly span: number;
  readonly facts: readonly string[];
  /** Void calls are in it. */
  readonly voids?: true;
}

const KEY = ["key", "account"];
const MODEL = ["provider", "model"];
/** All facts by days; and by half hours too, those that nearly each report is by: their sums are few beside those of all facts. */
const DEPTHS: readonly Depth[] = [
  { table: "day_key", span: DAY_MS, facts: KEY },
  { table: "day_model", span: DAY_MS, facts: MODEL },
  { table: "half_key", span: HALF_MS, facts: KEY },
  { table: "half_model", span: HALF_MS, facts: MODEL },
  { table: "day", span: DAY_MS, facts: GROUP, voids: true },
];

/** Of those that say all that is asked, the one that says the least of each span; longer spans first. */
export function depthsFor(facts: readonly string[], voids: boolean): readonly Depth[] {
  const saying = DEPTHS.filter(
    (depth) => (!voids || depth.voids) && facts.every((fact) => depth.facts.includes(fact)),
  );
  return [DAY_MS, HALF_MS].flatMap((span) => saying.find((depth) => depth.span === span) ?? []);
}

const COUNTS = ["rows", "calls", "unpriced", "estimated", "nano"];
/** Tables of sums, and those of what was used beside each. */
export const SUMMED = DEPTHS.flatMap(({ table }) => [table, `${table}_unit`]);

/** The name of a group: of its facts. */
export const named = (facts: readonly string[]): string =>
  `sha256(convert_to(json_build_array(${facts.join(", ")})::text, 'UTF8'))`;

/** Facts that a call may lack. */
const OPTIONAL = new Set(["account", "price", "labels"]);
const columns = (facts: readonly string[]): string =>
  facts
    .map(
      (fact) =>
        `${fact} text${fact === "key" ? ' COLLATE "C"' : ""}${OPTIONAL.has(fact) ? "" : " NOT NULL"}, `,
    )
    .join("");

/** What units say beside the name of their group: of a few facts all, so that they need no group to be read. */
const inUnits = ({ facts }: Depth): readonly string[] => (facts === GROUP ? [] : facts);

/** `s`: the schema. */
export const sumTables = (s: string): string =>
  DEPTHS.map((depth) => {
    const { table, facts } = depth;
    const index = (of: string, its: readonly string[]) =>
      its.includes("key") ? `\nCREATE INDEX ${of}_of ON ${s}.${of} (key, at);` : "";
    return `
CREATE TABLE ${s}.${table} (
  at bigint NOT NULL, grp bytea NOT NULL, ${columns(facts)}
  rows bigint NOT NULL, calls bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, nano numeric NOT NULL,
  PRIMARY KEY (at, grp));${index(table, facts)}
CREATE TABLE ${s}.${table}_unit (
  at bigint NOT NULL, grp bytea NOT NULL, unit text NOT NULL, ${columns(inUnits(depth))}whole numeric NOT NULL, parts numeric NOT NULL,
  PRIMARY KEY (at, grp, unit));${index(`${table}_unit`, inUnits(depth))}`;
  }).join("\n");

/** What was used of those groups `e` that are meant, as `u`. `few`: of all groups it is some, each looked up by itself; else both are read from end to end. */
export function unitsOf(s: string, depth: Depth, few: boolean): string {
  const { table } = depth;
  if (inUnits(depth).length > 0)
    return `${s}.${table}_unit e CROSS JOIN LATERAL (SELECT e.unit, e.whole, e.parts) u`;
  return few
    ? `${s}.${table} e ${each(`SELECT * FROM ${s}.${table}_unit u WHERE u.at = e.at AND u.grp = e.grp`)} u`
    : `${s}.${table} e JOIN ${s}.${table}_unit u ON u.at = e.at AND u.grp = e.grp`;
}

/** For each of what stands before it, by an index. PostgreSQL would read all that there is where it takes that for cheaper: not with an offset. */
export const each = (select: string): string => `CROSS JOIN LATERAL (${select} OFFSET 0)`;

/** What rows `e` have used of units that have columns. */
export const USED = COUNTED.map((unit) => `sum(e.${unit}) AS ${unit}`);

/** Entries of these batches are added to all sums that they are in, or taken from them. `batches`: a condition on `b`. */
export const adding = (s: string, batches: string, sign: "+" | "-"): string => `
  WITH fresh AS MATERIALIZED (
    SELECT e.*, ${floored("e.at", HALF_MS)} AS half
      FROM ${s}.batch b JOIN ${s}.booked e ON e.node = b.node AND e.n = b.n WHERE ${batches} AND e.kind <> 0),
  bare AS MATERIALIZED (
    SELECT e.half, e.node, e.terms, ${STATE} AS state, e.outcome, count(*) AS rows, ${SUMS.calls} AS calls,
      ${SUMS.unpriced} AS unpriced, ${SUMS.estimated} AS estimated, ${SUMS.nano} AS nano, ${USED.join(", ")}
    FROM fresh e GROUP BY 1, 2, 3, 4, 5),
  facts AS MATERIALIZED (
    SELECT e.*, ${GROUP.filter((name) => !OWN.includes(name))
      .map((name) => `t.${name}`)
      .join(", ")},
      ${named(GROUP.map((name) => (OWN.includes(name) ? `e.${name}` : `t.${name}`)))} AS name
    FROM bare e JOIN ${s}.terms t ON t.node = e.node AND t.id = e.terms),
  sums AS MATERIALIZED (
    SELECT e.half, e.name, ${GROUP.map((name) => `min(e.${name}) AS ${name}`).join(", ")}, ${COUNTS.map((name) => `${sign} sum(e.${name}) AS ${name}`).join(", ")}
    FROM facts e GROUP BY 1, 2),
  units AS MATERIALIZED (
    SELECT u.half, u.name, u.unit, ${sign} sum(u.whole) AS whole, ${sign} sum(u.parts) AS parts FROM (
      SELECT f.half, f.name, u.unit, u.whole, 0 AS parts
        FROM facts f, LATERAL (VALUES ${COUNTED.map((unit) => `('${unit}', f.${unit})`).join(", ")}) u(unit, whole) WHERE u.whole IS NOT NULL
      UNION ALL
      SELECT f.half, f.name, u.key, ${SUMS.whole}, ${SUMS.parts}
        FROM fresh e JOIN facts f ON f.half = e.half AND f.node = e.node AND f.terms = e.terms AND f.state = e.state AND f.outcome = e.outcome,
          json_each_text(e.usage::json) u WHERE e.kind <> 2 AND e.usage IS NOT NULL GROUP BY 1, 2, 3) u
    GROUP BY 1, 2, 3)
  ${DEPTHS.map((depth) => put(s, depth)).join("")}
  SELECT count(*) INTO strict many FROM sums;`;

/** One of a statement's parts: what `sums` and `units` come to at this depth. */
function put(s: string, depth: Depth): string {
  const { table, span, facts, voids } = depth;
  const said = inUnits(depth);
  const beside = said.map((name) => `${name}, `).join("");
  const all = COUNTS.map((name) => `sum(x.${name})`).join(", ");
  const more = COUNTS.map((name) => `${name} = d.${name} + excluded.${name}`).join(", ");
  return `,
  of_${table} AS MATERIALIZED (
    SELECT x.*, ${floored("x.half", span)} AS at, ${facts === GROUP ? "x.name" : named(facts)} AS grp
      FROM sums x${voids ? "" : " WHERE x.state <> 'void'"}),
  in_${table} AS (
    INSERT INTO ${s}.${table} AS d (at, grp, ${[...facts, ...COUNTS].join(", ")})
      SELECT x.at, x.grp, ${facts.map((name) => `min(x.${name})`).join(", ")}, ${all} FROM of_${table} x GROUP BY 1, 2
      ON CONFLICT (at, grp) DO UPDATE SET ${more}),
  in_${table}_unit AS (
    INSERT INTO ${s}.${table}_unit AS d (at, grp, unit, ${beside}whole, parts)
      SELECT x.at, x.grp, u.unit, ${said.map((name) => `min(x.${name}), `).join("")}sum(u.whole), sum(u.parts)
      FROM of_${table} x JOIN units u ON u.half = x.half AND u.name = x.name GROUP BY 1, 2, 3
      ON CONFLICT (at, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts)`;
}

/** Sums of nothing go. */
export const swept = (s: string): string =>
  DEPTHS.map(
    ({ table }) => `
  DELETE FROM ${s}.${table}_unit u USING ${s}.${table} d WHERE d.rows = 0 AND u.at = d.at AND u.grp = d.grp;
  DELETE FROM ${s}.${table} WHERE rows = 0;`,
  ).join("");

/** `s`: the schema. */
export const summing = (s: string): string => `
CREATE FUNCTION ${s}.sum_1(p_most bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $sum$
DECLARE low bigint; high bigint; many bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true), set_config('jit', 'off', true);
  SELECT upto INTO low FROM ${s}.summed FOR UPDATE SKIP LOCKED;
  IF low IS NULL THEN RETURN 0; END IF;
  SELECT max(pos + entries) INTO high FROM
    (SELECT b.pos, b.entries FROM ${s}.batch b WHERE b.pos >= low AND b.entries > 0 ORDER BY b.pos LIMIT p_most) picked;
  IF high IS NULL THEN RETURN 0; END IF;
  ${adding(s, "b.pos >= low AND b.pos < high", "+")}
  UPDATE ${s}.summed SET upto = high;
  RETURN high - low;
END $sum$;
`;
