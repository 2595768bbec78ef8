// A compaction runs in one database transaction. Checkpoint rollups replace the rows, the rows are
// subtracted from the daily and half-hour rollups, and a note is added to the chain. Batches do not
// wait for the compaction, because it only changes finished calls.
import { addToRollupsSql, deleteEmptyRollupsSql } from "./rollup-sql.ts";

/**
 * Returns SQL for the reserves that rows from `p_to` on refer to: reserves from `p_from` on, and
 * reserves that were retained before.
 */
const retainedReservesSql = (schema: string): string => `
CREATE FUNCTION ${schema}.retained_reserves_1(p_from bigint, p_to bigint) RETURNS TABLE (node int, n bigint, i int)
LANGUAGE sql STABLE SECURITY DEFINER AS $carried$
  SELECT e.node, e.n, e.i FROM (
      SELECT e.* FROM ${schema}.batch b JOIN ${schema}.ledger_row e ON e.node = b.node AND e.n = b.n
        WHERE b.seq >= p_from AND b.seq < p_to AND e.kind = 0
      UNION ALL
      SELECT e.* FROM ${schema}.checkpoint o, json_array_elements(o.text::json -> 'retainedReserves') k
        JOIN ${schema}.ledger_row e ON e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int) e
    WHERE EXISTS (SELECT 1 FROM ${schema}.ledger_row l LEFT JOIN ${schema}.batch b ON b.node = l.node AND b.n = l.n
      WHERE l.attempt = e.attempt AND l.started_at = e.started_at AND l.kind <> 0 AND (b.seq IS NULL OR b.seq >= p_to))
    ORDER BY 1, 2, 3
$carried$;
`;

/** Returns the SQL for the compaction functions. */
export const compactionSql = (schema: string): string => `${retainedReservesSql(schema)}
CREATE FUNCTION ${schema}.compact_1(p_node int, p_n bigint, p_hash bytea, p_note text, p_salt text,
  p_from bigint, p_to bigint, p_rollups bigint, p_checkpoint text, p_retained text,
  s_n bigint[], s_quarter bigint[], s_text text[], s_hash text[])
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $prune$
DECLARE mark bigint; was bigint; kept text; many bigint;
BEGIN
  PERFORM set_config('jit', 'off', true);
  -- Locks out updates of rollups and other prunes.
  SELECT up_to INTO mark FROM ${schema}.rollup_position FOR UPDATE;
  SELECT next_seq INTO was FROM ${schema}.checkpoint FOR UPDATE;
  IF mark < p_to OR coalesce(was, 1) <> p_from THEN RETURN 'again'; END IF;
  IF EXISTS (SELECT 1 FROM ${schema}.open_call o JOIN ${schema}.ledger_row e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0
      JOIN ${schema}.batch b ON b.node = e.node AND b.n = e.n WHERE b.seq < p_to) THEN RETURN 'again'; END IF;
  SELECT coalesce(string_agg(c.node || '/' || c.n || '/' || c.i, ' ' ORDER BY c.node, c.n, c.i), '') INTO kept
    FROM ${schema}.retained_reserves_1(p_from, p_to) c;
  IF kept <> p_retained THEN RETURN 'again'; END IF;
  PERFORM set_config('tollgate.maintenance', 'on', true);${addToRollupsSql(schema, "b.seq >= p_from AND b.seq < p_to", "-")}${deleteEmptyRollupsSql(schema)}
  DELETE FROM ${schema}.ledger_row e USING ${schema}.batch b
    WHERE b.seq >= p_from AND b.seq < p_to AND e.node = b.node AND e.n = b.n
      AND (e.kind <> 0 OR strpos(' ' || kept || ' ', ' ' || e.node || '/' || e.n || '/' || e.i || ' ') = 0);
  DELETE FROM ${schema}.ledger_row e USING ${schema}.checkpoint o, json_array_elements(o.text::json -> 'retainedReserves') k
    WHERE e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int
      AND strpos(' ' || kept || ' ', ' ' || e.node || '/' || e.n || '/' || e.i || ' ') = 0;
  DELETE FROM ${schema}.batch WHERE seq >= p_from AND seq < p_to;
  INSERT INTO ${schema}.checkpoint_rollup SELECT * FROM unnest(s_n, s_quarter, s_text, s_hash);
  INSERT INTO ${schema}.checkpoint (next_seq, rollups, text) VALUES (p_to, p_rollups, p_checkpoint)
    ON CONFLICT (one) DO UPDATE SET next_seq = excluded.next_seq, rollups = excluded.rollups, text = excluded.text;
  UPDATE ${schema}.node SET n = p_n, head = p_hash WHERE epoch = p_node AND n = p_n - 1;
  IF NOT FOUND THEN RAISE EXCEPTION 'not the next of its node' USING ERRCODE = 'TG002'; END IF;
  INSERT INTO ${schema}.note VALUES (p_node, p_n, 0, 'compacted', p_to::text, floor(extract(epoch FROM clock_timestamp()) * 1000), p_note, p_salt);
  INSERT INTO ${schema}.batch (node, n, at, hash, entries) VALUES (p_node, p_n, clock_timestamp(), p_hash, 0);
  PERFORM set_config('tollgate.maintenance', 'off', true);
  RETURN 'done';
END $prune$;

-- Deletes terms that no row uses any more, from the next p_most terms. A live node is locked meanwhile, so that it writes no row with them.
-- If it cannot be locked, its terms are left for the next run.
CREATE FUNCTION ${schema}.delete_unused_terms_1(INOUT p_node int, INOUT p_id bigint, p_most int) LANGUAGE plpgsql SECURITY DEFINER AS $sweep$
DECLARE part record; to_node int; to_id bigint;
BEGIN
  PERFORM set_config('tollgate.maintenance', 'on', true), set_config('lock_timeout', '700', true);
  FOR part IN SELECT t.node, array_agg(t.id) AS ids, max(t.id) AS last, bool_or(w.state = 'live') AS lives FROM
      (SELECT node, id FROM ${schema}.terms WHERE (node, id) > (p_node, p_id) ORDER BY node, id LIMIT p_most) t
      JOIN ${schema}.node w ON w.epoch = t.node GROUP BY t.node ORDER BY t.node LOOP
    to_node := part.node; to_id := part.last;
    part.ids := ARRAY(SELECT u.id FROM unnest(part.ids) AS u(id)
      WHERE NOT EXISTS (SELECT 1 FROM ${schema}.ledger_row e WHERE e.node = part.node AND e.terms = u.id));
    CONTINUE WHEN cardinality(part.ids) = 0;
    BEGIN
      IF part.lives THEN PERFORM 1 FROM ${schema}.node WHERE epoch = part.node FOR UPDATE; END IF;
      DELETE FROM ${schema}.terms t WHERE t.node = part.node AND t.id = ANY (part.ids)
        AND NOT EXISTS (SELECT 1 FROM ${schema}.ledger_row e WHERE e.node = t.node AND e.terms = t.id);
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  p_node := to_node; p_id := to_id;
  PERFORM set_config('tollgate.maintenance', 'off', true);
END $sweep$;

-- Drops the partitions of months without rows. A partition that is in use is left for the next run.
CREATE FUNCTION ${schema}.drop_empty_partitions_1() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $shrink$
DECLARE part record; empty boolean; many int := 0;
BEGIN
  PERFORM set_config('lock_timeout', '200', true);
  FOR part IN SELECT c.oid::regclass AS name FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
      WHERE h.inhparent IN ('${schema}.ledger_row'::regclass, '${schema}.batch'::regclass)
        AND c.relname ~ '_\\d{4}_\\d{2}$' AND right(c.relname, 7) < to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY_MM') LOOP
    BEGIN
      EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM %s)', part.name) INTO empty;
      CONTINUE WHEN NOT empty;
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', part.name);
      EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM %s)', part.name) INTO empty;
      CONTINUE WHEN NOT empty;
      EXECUTE format('DROP TABLE %s', part.name);
      many := many + 1;
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  RETURN many;
END $shrink$;
`;
