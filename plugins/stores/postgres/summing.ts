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

/** What rows `e` are added up by: their day, and the name of their group. */
export const DAYS = `e.*, e.at - mod(e.at, ${DAY_MS}) AS day, sha256(convert_to(
        json_build_array(${GROUP.map(of).join(", ")})::text, 'UTF8')) AS grp`;

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
  WITH fresh AS MATERIALIZED (
    SELECT ${DAYS} FROM ${s}.batch b JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n
      WHERE b.pos >= low AND b.pos < high AND e.kind <> 0),
  days AS (
    INSERT INTO ${s}.day AS d (day, grp, ${GROUPED}, rows, calls, unpriced, estimated, nano)
      SELECT e.day, e.grp, ${GROUP.map((name) => `min(${of(name)})`).join(", ")}, count(*), ${SUMS.calls}, ${SUMS.unpriced}, ${SUMS.estimated}, ${SUMS.nano}
      FROM fresh e GROUP BY 1, 2
      ON CONFLICT (day, grp) DO UPDATE SET rows = d.rows + excluded.rows, calls = d.calls + excluded.calls,
        unpriced = d.unpriced + excluded.unpriced, estimated = d.estimated + excluded.estimated, nano = d.nano + excluded.nano)
  INSERT INTO ${s}.day_unit AS d (day, grp, unit, whole, parts)
    SELECT e.day, e.grp, u.key, ${SUMS.whole}, ${SUMS.parts}
    FROM fresh e, json_each_text(e.usage::json) u WHERE e.kind <> 2 GROUP BY 1, 2, 3
    ON CONFLICT (day, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts;
  UPDATE ${s}.summed SET upto = high;
  RETURN high - low;
END $sum$;
`;
