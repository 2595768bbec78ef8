// What days came to, added up once: entries that have their numbers are added to the sums of their day, each once, up to a mark. A row whose time is
// past goes where it belongs.

const GROUP = [
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
const of = (name: string): string => (name === "state" ? STATE : `e.${name}`);

/** Sums over rows `e`, and over what `u` says that each has used. */
export const SUMS = {
  calls: "count(*) FILTER (WHERE e.kind <> 2)",
  unpriced: "count(*) FILTER (WHERE e.kind <> 2 AND e.cost IS NULL)",
  estimated: "count(*) FILTER (WHERE e.kind <> 2 AND e.state = 'estimated')",
  nano: "coalesce(sum(e.cost), 0)",
  whole: "sum(floor(u.value::numeric))",
  parts: "sum(round((u.value::numeric - floor(u.value::numeric)) * 1000000))",
} as const;

/** Columns of a day's group. */
export const GROUPED = GROUP.join(", ");

/** Facts that nearly each report is by, and no others: their sums are few beside those of all facts. Void calls are in none of them. */
const MARGINS = { day_key: ["key", "account"], day_model: ["provider", "model"] } as const;

/** The sums that say the least, and enough for what these facts are asked for. */
export const sumsFor = (facts: readonly string[]): { readonly table: string; margin: boolean } => {
  const found = Object.entries(MARGINS).find(([, its]) =>
    facts.every((fact) => (its as readonly string[]).includes(fact)),
  );
  return { table: found?.[0] ?? "day", margin: found !== undefined };
};

const COUNTS = ["rows", "calls", "unpriced", "estimated", "nano"];
const names = (table: string): readonly string[] =>
  table in MARGINS ? MARGINS[table as keyof typeof MARGINS] : GROUP;
/** Tables of sums, and those of what was used beside each. */
export const SUMMED = ["day", ...Object.keys(MARGINS)].flatMap((table) => [table, `${table}_unit`]);

/** The name of a group: of its facts. */
const named = (facts: readonly string[]): string =>
  `sha256(convert_to(json_build_array(${facts.join(", ")})::text, 'UTF8'))`;

const REQUIRED = new Set([
  "key",
  "provider",
  "model",
  "credential",
  "frontend",
  "state",
  "outcome",
]);
/** `s`: the schema. */
export const sumTables = (s: string): string =>
  ["day", ...Object.keys(MARGINS)]
    .map(
      (table) => `
CREATE TABLE ${s}.${table} (
  day bigint NOT NULL, grp bytea NOT NULL,
  ${names(table)
    .map(
      (fact) =>
        `${fact} text${fact === "key" ? ' COLLATE "C"' : ""}${REQUIRED.has(fact) ? " NOT NULL" : ""}, `,
    )
    .join("")}
  rows bigint NOT NULL, calls bigint NOT NULL, unpriced bigint NOT NULL, estimated bigint NOT NULL, nano numeric NOT NULL,
  PRIMARY KEY (day, grp));
CREATE TABLE ${s}.${table}_unit (
  day bigint NOT NULL, grp bytea NOT NULL, unit text NOT NULL, whole numeric NOT NULL, parts numeric NOT NULL,
  PRIMARY KEY (day, grp, unit));${
    names(table).includes("key") ? `\nCREATE INDEX ${table}_of ON ${s}.${table} (key, day);` : ""
  }`,
    )
    .join("\n");

const put = (s: string, table: string, select: string): string =>
  `INSERT INTO ${s}.${table} AS d (day, grp, ${[...names(table), ...COUNTS].join(", ")}) ${select}
      ON CONFLICT (day, grp) DO UPDATE SET ${COUNTS.map((name) => `${name} = d.${name} + excluded.${name}`).join(", ")}`;
const putUnits = (s: string, table: string, select: string): string =>
  `INSERT INTO ${s}.${table}_unit AS d (day, grp, unit, whole, parts) ${select}
      ON CONFLICT (day, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts`;

/** Entries of these batches are added to all sums that they are in, or taken from them. `batches`: a condition on `b`. */
export const adding = (s: string, batches: string, sign: "+" | "-"): string => `
  WITH fresh AS MATERIALIZED (
    SELECT e.*, e.at - mod(e.at, ${DAY_MS}) AS day, ${named(GROUP.map(of))} AS grp
      FROM ${s}.batch b JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n WHERE ${batches} AND e.kind <> 0),
  days AS MATERIALIZED (
    SELECT e.day, e.grp, ${GROUP.map((name) => `min(${of(name)}) AS ${name}`).join(", ")}, ${sign} count(*) AS rows, ${sign} ${SUMS.calls} AS calls,
      ${sign} ${SUMS.unpriced} AS unpriced, ${sign} ${SUMS.estimated} AS estimated, ${sign} ${SUMS.nano} AS nano
    FROM fresh e GROUP BY 1, 2),
  used AS MATERIALIZED (
    SELECT e.day, e.grp, u.key AS unit, ${sign} ${SUMS.whole} AS whole, ${sign} ${SUMS.parts} AS parts
    FROM fresh e, json_each_text(e.usage::json) u WHERE e.kind <> 2 GROUP BY 1, 2, 3),
  ${Object.entries(MARGINS)
    .map(
      ([table, facts]) => `of_${table} AS MATERIALIZED (
    SELECT d.*, ${named(facts)} AS margin FROM days d WHERE d.state <> 'void'),
  in_${table} AS (${put(
    s,
    table,
    `SELECT d.day, d.margin, ${facts.map((name) => `min(d.${name})`).join(", ")}, ${COUNTS.map((name) => `sum(d.${name})`).join(", ")}
      FROM of_${table} d GROUP BY 1, 2`,
  )}),
  in_${table}_unit AS (${putUnits(
    s,
    table,
    `SELECT d.day, d.margin, u.unit, sum(u.whole), sum(u.parts)
      FROM of_${table} d JOIN used u ON u.day = d.day AND u.grp = d.grp GROUP BY 1, 2, 3`,
  )}),`,
    )
    .join("\n  ")}
  in_day AS (${put(s, "day", `SELECT day, grp, ${[...GROUP, ...COUNTS].join(", ")} FROM days`)})
  ${putUnits(s, "day", "SELECT day, grp, unit, whole, parts FROM used")};`;

/** Sums of nothing go. */
export const swept = (s: string): string =>
  ["day", ...Object.keys(MARGINS)]
    .map(
      (table) => `
  DELETE FROM ${s}.${table}_unit u USING ${s}.${table} d WHERE d.rows = 0 AND u.day = d.day AND u.grp = d.grp;
  DELETE FROM ${s}.${table} WHERE rows = 0;`,
    )
    .join("");

/** `s`: the schema. */
export const summing = (s: string): string => `
CREATE FUNCTION ${s}.sum_1(p_most bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $sum$
DECLARE low bigint; high bigint;
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
