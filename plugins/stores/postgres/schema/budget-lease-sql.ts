// Budget leases: a part of a budget that is set aside for one node. The meter counts a lease as
// reserved, so all rules treat the amount as taken. `amount` is the unspent part. `spent` is the
// amount that the node has used and that the meter has not counted yet. A call moves its
// reservation out of `amount`. When the call ends, the unused part is moved back. The reserved
// amount of a meter therefore always equals its open calls plus its leases, whichever node settles
// a call.
//
// Hot budgets: calls are counted in their node's lease by the transaction that writes their rows.
// The meter is updated with the next heartbeat. The database knows all spending of such a lease, so
// it can return the lease of a dead node.
//
// Offline leases (`is_offline`): the node may spend them while the database is unreachable. The
// spent amount is unknown until the node reports it. They are returned only when the node reports,
// and not when its lease expires.
//
// A recall requests the return of leases on meters at which a client was denied.
import { APPLY_BATCH_ARGUMENTS } from "./apply-batch.ts";

/** Time in which no new lease is taken on a recalled meter. */
const RECALL_INTERVAL_SQL = "interval '1 minute'";
/** Gateways that used a meter within this window count as using it at the same time. */
const HOT_WINDOW_SQL = "interval '10 seconds'";

/** Additional arguments for the amounts that a batch takes from leases. */
export const LEASED_ARGUMENTS = [
  ["i_id", "text[]"],
  ["i_need", "numeric[]"],
  ["i_run", "numeric[]"],
  ["i_used", "numeric[]"],
] as const;

/** Returns the SQL for the tables and functions of budget leases. */
export const budgetLeaseSql = (schema: string): string =>
  [leaseTablesSql, takeLeaseSql, returnLeaseSql, recallSql, applyLeasedSql]
    .map((part) => part(schema))
    .join("\n");

const leaseTablesSql = (schema: string): string => `
CREATE TABLE ${schema}.budget_lease (
  meter text COLLATE "C" NOT NULL, node text NOT NULL, amount numeric NOT NULL CHECK (amount >= 0),
  spent numeric NOT NULL DEFAULT 0 CHECK (spent >= 0), is_offline boolean NOT NULL, PRIMARY KEY (meter, node))
  WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX budget_lease_of ON ${schema}.budget_lease (node);
CREATE TABLE ${schema}.lease_recall (meter text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL);
CREATE TABLE ${schema}.lease_use (node text PRIMARY KEY, at timestamptz NOT NULL, meters text[] NOT NULL) WITH (fillfactor = 40);
`;

const takeLeaseSql = (schema: string): string => `
-- m_want: for a hot budget, the amount that this node uses in an interval. NULL: a standing slice. m_take: the amount of one call.
CREATE FUNCTION ${schema}.take_lease_1(p_node text, p_is_offline boolean, p_share numeric, m_id text[], m_max numeric[], m_want numeric[], m_take numeric[])
RETURNS TABLE (id text, amount numeric, level numeric, reserved numeric, max numeric, peak numeric) LANGUAGE plpgsql SECURITY DEFINER AS $slice$
#variable_conflict use_column
DECLARE live bigint := (SELECT greatest(count(*), 1) FROM ${schema}.node w WHERE w.state = 'live');
BEGIN
  PERFORM set_config('lock_timeout', '700', true);
  -- Amounts for offline mode must survive a crash of the database.
  IF NOT p_is_offline THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  -- Locks the meters first, in the order of their IDs, as apply_batch_1 does, to prevent deadlocks.
  PERFORM 1 FROM ${schema}.meter m WHERE m.id = ANY (m_id) ORDER BY m.id FOR NO KEY UPDATE;
  RETURN QUERY WITH had AS MATERIALIZED (
      SELECT i.meter, i.amount, i.spent FROM ${schema}.budget_lease i WHERE i.node = p_node AND i.meter = ANY (m_id)),
    room AS MATERIALIZED (
      SELECT m.id, m.peak, x.want, x.max - m.level - m.reserved AS room, coalesce(h.spent, 0) AS spent, h.meter IS NOT NULL AS has,
          coalesce(h.amount, 0) AS amount, x.take, EXISTS (SELECT 1 FROM ${schema}.lease_recall r
            WHERE r.meter = m.id AND r.at > clock_timestamp() - ${RECALL_INTERVAL_SQL}) AS recalled
        FROM unnest(m_id, m_max, m_want, m_take) AS x(id, max, want, take) JOIN ${schema}.meter m ON m.id = x.id LEFT JOIN had h ON h.meter = m.id),
    part AS MATERIALIZED (
      SELECT r.id, r.peak, r.spent, r.has, greatest(CASE WHEN r.recalled THEN 0
          WHEN r.want IS NULL THEN CASE WHEN r.has THEN 0 ELSE floor(r.room * p_share) END
          -- A budget that is nearly spent is not divided into slices.
          WHEN r.room < 4 * live * r.take OR r.amount * 2 > r.want THEN 0
          ELSE floor(least(r.want - r.amount, r.room / (2 * live))) END, 0) AS part FROM room r),
    taken AS (INSERT INTO ${schema}.budget_lease AS i (meter, node, amount, is_offline) SELECT p.id, p_node, p.part, p_is_offline FROM part p WHERE p.part > 0 OR p.has
      ON CONFLICT (meter, node) DO UPDATE SET amount = i.amount + excluded.amount, spent = 0
      RETURNING i.meter, i.amount),
    updated AS (UPDATE ${schema}.meter m SET level = m.level + p.spent, reserved = m.reserved - p.spent + p.part, peak = greatest(m.peak, m.level + p.spent)
      FROM part p WHERE m.id = p.id RETURNING m.id, m.level, m.reserved, m.max, p.peak)
    SELECT t.id, k.amount, t.level, t.reserved, t.max, t.peak FROM updated t JOIN taken k ON k.meter = t.id;
END $slice$;
`;

/**
 * Returns SQL that returns the rows of `gone` to their meters. It also selects the previous peaks,
 * because thresholds that are reached by the return must be reported.
 */
const returnToMetersSql = (schema: string): string =>
  `was AS MATERIALIZED (SELECT m.id, m.peak FROM ${schema}.meter m JOIN gone g ON g.meter = m.id)
    UPDATE ${schema}.meter m SET reserved = m.reserved - g.reserved, level = m.level + g.spent, peak = greatest(m.peak, m.level + g.spent)
      FROM gone g JOIN was ON was.id = g.meter WHERE m.id = g.meter RETURNING m.id, m.level, m.max, was.peak;`;

const returnLeaseSql = (schema: string): string => `
CREATE FUNCTION ${schema}.return_lease_1(p_node text, m_id text[])
RETURNS TABLE (id text, level numeric, max numeric, peak numeric) LANGUAGE plpgsql SECURITY DEFINER AS $unslice$
#variable_conflict use_column
DECLARE ids text[] := coalesce(m_id, ARRAY(SELECT i.meter FROM ${schema}.budget_lease i WHERE i.node = p_node));
BEGIN
  PERFORM set_config('lock_timeout', '700', true);
  PERFORM 1 FROM ${schema}.meter m WHERE m.id = ANY (ids) ORDER BY m.id FOR NO KEY UPDATE;
  RETURN QUERY WITH gone AS (DELETE FROM ${schema}.budget_lease i WHERE i.node = p_node AND i.meter = ANY (ids) RETURNING i.meter, i.amount + i.spent AS reserved, i.spent),
    ${returnToMetersSql(schema)}
  IF m_id IS NULL THEN DELETE FROM ${schema}.lease_use WHERE node = p_node; END IF;
END $unslice$;

-- Returns the leases of nodes that are not live. Such nodes cannot spend without the database.
CREATE FUNCTION ${schema}.return_dead_leases_1()
RETURNS TABLE (id text, level numeric, max numeric, peak numeric) LANGUAGE plpgsql SECURITY DEFINER AS $dead$
#variable_conflict use_column
DECLARE dead text[] := ARRAY(SELECT DISTINCT i.node FROM ${schema}.budget_lease i
    WHERE NOT i.is_offline AND NOT EXISTS (SELECT 1 FROM ${schema}.node w WHERE w.id = i.node AND w.state = 'live'));
BEGIN
  IF cardinality(dead) = 0 THEN RETURN; END IF;
  PERFORM set_config('lock_timeout', '700', true);
  PERFORM 1 FROM ${schema}.meter m WHERE m.id IN (SELECT i.meter FROM ${schema}.budget_lease i WHERE i.node = ANY (dead)) ORDER BY m.id FOR NO KEY UPDATE;
  RETURN QUERY WITH deleted AS (DELETE FROM ${schema}.budget_lease i WHERE i.node = ANY (dead) AND NOT i.is_offline RETURNING i.meter, i.amount, i.spent),
    gone AS (SELECT d.meter, sum(d.amount + d.spent) AS reserved, sum(d.spent) AS spent FROM deleted d GROUP BY 1),
    ${returnToMetersSql(schema)}
  DELETE FROM ${schema}.lease_use WHERE node = ANY (dead);
END $dead$;
`;

const recallSql = (schema: string): string => `
CREATE FUNCTION ${schema}.recall_leases_1(m_id text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $recall$
DECLARE many bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO ${schema}.lease_recall (meter, at)
    SELECT x.id, clock_timestamp() FROM unnest(m_id) AS x(id)
      WHERE EXISTS (SELECT 1 FROM ${schema}.budget_lease i WHERE i.meter = x.id) ORDER BY x.id COLLATE "C"
    ON CONFLICT (meter) DO UPDATE SET at = excluded.at;
  GET DIAGNOSTICS many = ROW_COUNT;
  RETURN many;
END $recall$;

-- Returns the meters that at least p_from nodes use, this node included, and the number of live nodes.
CREATE FUNCTION ${schema}.report_use_1(p_node text, m_id text[], p_from bigint, OUT live bigint, OUT hot text[]) LANGUAGE plpgsql SECURITY DEFINER AS $touched$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO ${schema}.lease_use AS t VALUES (p_node, clock_timestamp(), m_id) ON CONFLICT (node) DO UPDATE SET at = excluded.at, meters = excluded.meters;
  hot := ARRAY(SELECT u.id FROM ${schema}.lease_use t, unnest(t.meters) AS u(id)
    WHERE t.at > clock_timestamp() - ${HOT_WINDOW_SQL} AND u.id = ANY (m_id) GROUP BY 1 HAVING count(*) >= p_from);
  live := (SELECT count(*) FROM ${schema}.node w WHERE w.state = 'live');
END $touched$;
`;

const applyLeasedSql = (schema: string): string => `
-- Applies a batch that takes a part of its amounts from slices. No other node uses their rows.
CREATE FUNCTION ${schema}.apply_leased_batch_1(${[...APPLY_BATCH_ARGUMENTS, ...LEASED_ARGUMENTS].map((each) => each.join(" ")).join(", ")})
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $sliced$
DECLARE result text := ${schema}.apply_batch_1(${APPLY_BATCH_ARGUMENTS.map(([name]) => name).join(", ")}); k int;
BEGIN
  IF starts_with(result, 'ok;') THEN
    UPDATE ${schema}.budget_lease i SET amount = i.amount - x.run, spent = i.spent + x.used
      FROM unnest(i_id, i_need, i_run, i_used) AS x(id, need, run, used)
      WHERE i.meter = x.id AND i.meter = ANY (i_id) AND i.node = (SELECT w.id FROM ${schema}.node w WHERE w.epoch = p_node) AND i.amount >= greatest(x.need, x.run, 0);
    GET DIAGNOSTICS k = ROW_COUNT;
    IF k < cardinality(i_id) THEN RAISE EXCEPTION 'no such slice' USING ERRCODE = 'TG004'; END IF;
  END IF;
  RETURN result;
END $sliced$;
`;

/** Returns SQL that selects the recalled leases of a node. */
export const recalledLeasesSql = (schema: string): string =>
  `SELECT (SELECT count(*) FROM ${schema}.node w WHERE w.state = 'live')::text AS live,
    (SELECT coalesce(json_agg(i.meter), '[]') FROM ${schema}.budget_lease i JOIN ${schema}.lease_recall r ON r.meter = i.meter
      WHERE i.node = $1 AND r.at > clock_timestamp() - ${RECALL_INTERVAL_SQL})::text AS back`;

/** Returns SQL for the lease spending that meter `m` has not counted yet. */
export const unreportedSpendSql = (schema: string): string =>
  `(SELECT coalesce(sum(i.spent), 0) FROM ${schema}.budget_lease i WHERE i.meter = m.id)`;
