// Erasure in the database: the list of hashes whose text was erased, and the functions that remove
// text from rows, rollups, and notes.
import type { Problem } from "tollgate/plugin";
import { hashSet, isErasedSalt } from "tollgate/store";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { ALL_DIMENSIONS, groupNameSql } from "./rollup-sql.ts";

/** Returns the SQL for the erasure table and functions. */
export const erasureSql = (schema: string): string => `
CREATE TABLE ${schema}.erased (hash text PRIMARY KEY, by text NOT NULL);
CREATE INDEX erased_by ON ${schema}.erased (by);

-- Replaces the labels in the terms and rollups of each key. No new row may use these terms afterward.
CREATE FUNCTION ${schema}.erase_1(p_key text[], p_labels text[], p_now text[], t_of int[], t_node int[], t_id bigint[], t_salt text[], t_gone text[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $erase$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM ${schema}.rollup_position FOR UPDATE;
  PERFORM set_config('tollgate.maintenance', 'on', true);
  UPDATE ${schema}.terms t SET labels = p_now[x.of], salt = x.gone, live = false FROM unnest(t_of, t_node, t_id, t_salt, t_gone) AS x(of, node, id, salt, gone)
    WHERE t.node = x.node AND t.id = x.id AND t.salt = x.salt;
  WITH was AS (DELETE FROM ${schema}.rollup_day d USING unnest(p_key, p_labels, p_now) AS x(key, labels, now) WHERE d.key = x.key AND d.labels = x.labels RETURNING d.*, x.now),
  now AS MATERIALIZED (SELECT w.*, ${groupNameSql(ALL_DIMENSIONS.map((name) => (name === "labels" ? "w.now" : `w.${name}`)))} AS fresh FROM was w),
  put AS (
    INSERT INTO ${schema}.rollup_day AS d (at, grp, ${ALL_DIMENSIONS.join(", ")}, rows, calls, unpriced, estimated, nano)
      SELECT n.at, n.fresh, ${ALL_DIMENSIONS.map((name) => `min(n.${name === "labels" ? "now" : name})`).join(", ")},
        sum(n.rows), sum(n.calls), sum(n.unpriced), sum(n.estimated), sum(n.nano) FROM now n GROUP BY 1, 2
      ON CONFLICT (at, grp) DO UPDATE SET rows = d.rows + excluded.rows, calls = d.calls + excluded.calls,
        unpriced = d.unpriced + excluded.unpriced, estimated = d.estimated + excluded.estimated, nano = d.nano + excluded.nano),
  units AS (DELETE FROM ${schema}.rollup_day_unit u USING now n WHERE u.at = n.at AND u.grp = n.grp RETURNING u.at, n.fresh, u.unit, u.whole, u.parts)
  INSERT INTO ${schema}.rollup_day_unit AS d (at, grp, unit, whole, parts) SELECT u.at, u.fresh, u.unit, sum(u.whole), sum(u.parts) FROM units u GROUP BY 1, 2, 3
    ON CONFLICT (at, grp, unit) DO UPDATE SET whole = d.whole + excluded.whole, parts = d.parts + excluded.parts;
  PERFORM set_config('tollgate.maintenance', 'off', true);
END $erase$;

CREATE FUNCTION ${schema}.erase_notes_1(p_node int[], p_n bigint[], p_i int[], p_gone text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $notes$
BEGIN
  PERFORM set_config('tollgate.maintenance', 'on', true);
  UPDATE ${schema}.note o SET text = '', salt = x.gone FROM unnest(p_node, p_n, p_i, p_gone) AS x(node, n, i, gone)
    WHERE o.node = x.node AND o.n = x.n AND o.i = x.i;
  PERFORM set_config('tollgate.maintenance', 'off', true);
END $notes$;
`;

/** The content of an erasure note in the chain. */
export interface ErasureNote {
  readonly count: number;
  readonly hash: string;
}

/** Verifies that the erased hashes match the notes in the chain. Returns all erased hashes. */
export async function verifyErasures(
  sql: RunSql,
  schema: string,
  say: (problem: Problem) => void,
): Promise<ReadonlySet<string>> {
  const rows = await sql({ text: `SELECT hash, by FROM ${schema}.erased` });
  const by = new Map<string, string[]>();
  for (const row of rows) by.set(row["by"]!, [...(by.get(row["by"]!) ?? []), row["hash"]!]);
  for (const { id, text } of await sql({
    text: `SELECT id, text FROM ${schema}.note WHERE kind = 'erased'`,
  })) {
    const { count, hash } = JSON.parse(text!) as ErasureNote;
    const found = by.get(id!) ?? [];
    by.delete(id!);
    if (found.length !== count || hashSet(found) !== hash)
      say({ path: `/erased/${id}`, message: "The erased text differs from its record." });
  }
  for (const id of by.keys()) say({ path: `/erased/${id}`, message: "The erasure has no record." });
  return new Set(rows.map((row) => row["hash"]!));
}

/** Returns whether the salts of a row or note mark text as erased that no operator has erased. */
export function isErasedWithoutRecord(salt: string | null, gone: ReadonlySet<string>): boolean {
  if (salt === null || !salt.includes("=")) return false;
  const all = salt.startsWith("{")
    ? Object.values(JSON.parse(salt) as Readonly<Record<string, string>>)
    : [salt];
  return all.some((its) => isErasedSalt(its) && !gone.has(its.slice(1)));
}
