// The admission function of the database, called once per batch. The node has summed the batch into
// one delta per meter. The database checks that the deltas fit, enforces this under its locks, and
// writes all or nothing. It makes no other decision: the ledger rules determine which calls are
// denied.
//
// 1. Check without locks: a batch that cannot fit writes nothing. The check is skipped if the node
//   knows that there was plenty of room recently.
// 2. Fencing, heartbeat, chain, and batch number: one row that only its node writes.
// 3. Exactly once: a call is either open or not, and each of its rows is unique.
// 4. Meters last, in the order of their IDs, which is the order in which they are sent. New meters
//   are included. Locks are short, and the order prevents deadlocks.
//
// Both checks use the same rule, because a batch could otherwise be retried forever. Rate limits
// drain only by the database clock.

import { ROW_COLUMNS, TERMS_COLUMNS, COLUMN_TYPES } from "tollgate/store";
import { termsRecordsetSql } from "../rows/call-terms.ts";

/** SQL for the level of a rate limit after draining, in amount times milliseconds. */
const DRAINED_LEVEL_SQL = `least(greatest(greatest(coalesce(m.level, 0) - greatest(t - coalesce(m.at, 0), 0) * coalesce(x.max, m.max, 0), 0)
        + (x.used - x.unhold) * x.period, 0), 3 * coalesce(x.max, m.max, 0) * x.period)`;
const FITS_SQL = `(x.need IS NULL OR CASE WHEN x.period = 0
        THEN coalesce(m.level, 0) + coalesce(m.reserved, 0) + x.need <= x.max
        ELSE greatest(coalesce(m.level, 0) - greatest(t - coalesce(m.at, 0), 0) * x.max, 0) + x.need * x.period <= x.max * x.period END)`;
const METER_STATE_SQL = `coalesce(m.level, 0) || ' ' || coalesce(m.reserved, 0) || ' ' || coalesce(m.at, 0) || ' ' || coalesce(m.max, 0)
        || ' ' || coalesce(m.peak, 0)`;
/**
 * The LIMIT has no effect on the result. Without it, PostgreSQL estimates a number of rows that is
 * ten times as large.
 */
const METER_DELTAS_SQL = `(SELECT * FROM unnest(m_id, m_max, m_period, m_idle, m_take, m_unhold, m_used, m_need) WITH ORDINALITY
    AS x(id, max, period, idle, take, unhold, used, need, ord) LIMIT cardinality(m_id)) x`;

/**
 * Returns SQL that looks up each meter by ID. OFFSET 0 is needed because PostgreSQL would otherwise
 * scan the whole table for the estimated number of rows.
 */
const meterLookupSql = (schema: string, locked = ""): string =>
  `LATERAL (SELECT *, ctid AS place FROM ${schema}.meter WHERE id = x.id OFFSET 0 ${locked}) m`;

/**
 * If the time goes back by more than this, in milliseconds, the clock was set back. Smaller steps
 * are caused by ordinary reordering.
 */
const CLOCK_SKEW_MS = 10_000;
const CLOCK_WENT_BACK_SQL = `x.period > 0 AND m.at - t > ${CLOCK_SKEW_MS}`;
/** Whether the window of a member starts again. The ledger rules decide such a batch. */
const STARTS_AGAIN_SQL = "x.idle > 0 AND m.reserved = 0 AND m.at <= t - x.idle";
/** Whether the ledger rules must decide the batch. */
const NEEDS_RULES_SQL = `(${CLOCK_WENT_BACK_SQL}) OR (${STARTS_AGAIN_SQL})`;

/** Arguments of the admission function, in order, with their types. */
export const APPLY_BATCH_ARGUMENTS: readonly (readonly [name: string, type: string])[] = [
  ["p_node", "int"],
  ["p_n", "bigint"],
  ["p_hash", "bytea"],
  ["p_at", "bigint"],
  ["p_later", "boolean"],
  ["p_sure", "boolean"],
  ["m_id", "text[]"],
  ["m_max", "numeric[]"],
  ["m_period", "bigint[]"],
  // Members of groups: the idle time of a window in total, and -1 for other meters. 0: no member.
  ["m_idle", "bigint[]"],
  ["m_take", "numeric[]"],
  ["m_unhold", "numeric[]"],
  ["m_used", "numeric[]"],
  ["m_need", "numeric[]"],
  ["s_attempt", "text[]"],
  ["g_attempt", "text[]"],
  ["g_usage", "text[]"],
  ["g_cost", "bigint[]"],
  ["k_terms", "bigint[]"],
  // New terms as JSON. Empty if there are no new terms, which is the usual case.
  ["t_new", "text"],
  ["e_terms", "bigint[]"],
  ...ROW_COLUMNS.map((name) => [`e_${name}`, `${COLUMN_TYPES[name] ?? "text"}[]`] as const),
];

const argumentsWithPrefix = (prefix: string): readonly string[] =>
  APPLY_BATCH_ARGUMENTS.map(([name]) => name).filter((name) => name.startsWith(prefix));
const ENTRY_ARGUMENTS = argumentsWithPrefix("e_");
const withoutPrefix = (names: readonly string[]): string =>
  names.map((name) => name.slice(2)).join(", ");

/** Returns the SQL that creates the admission function and related functions. */
export const applyBatchSql = (schema: string): string =>
  lockMetersSql(schema) + checkTermsSql(schema) + applyFunctionSql(schema) + heartbeatSql(schema);

/** Returns SQL for a function that locks meters and creates missing meters. */
const lockMetersSql = (schema: string): string => `
CREATE FUNCTION ${schema}.lock_meters_1(m_id text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $lock$
DECLARE x text;
BEGIN
  IF (SELECT count(*) FROM ${schema}.meter WHERE id = ANY (m_id)) = cardinality(m_id) THEN
    PERFORM 1 FROM ${schema}.meter WHERE id = ANY (m_id) ORDER BY id FOR NO KEY UPDATE;
    RETURN;
  END IF;
  -- Meters are created and locked in the order of their IDs. In another order, two transactions could wait for each other.
  FOR x IN SELECT u.id FROM unnest(m_id) AS u(id) ORDER BY u.id COLLATE "C" LOOP
    LOOP
      PERFORM 1 FROM ${schema}.meter WHERE id = x FOR NO KEY UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO ${schema}.meter (id) VALUES (x) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
END $lock$;
`;

/**
 * Returns SQL that checks that the referenced terms exist and were not erased. Each term is looked
 * up by ID, because a node has thousands of terms.
 */
const CHECK_TERMS_SQL = (
  schema: string,
): string => `IF cardinality(k_terms) > 0 AND (SELECT count(*) FROM unnest(k_terms) k(id), LATERAL
        (SELECT 1 FROM ${schema}.terms WHERE node = p_node AND id = k.id AND live OFFSET 0) there) < cardinality(k_terms) THEN
      RAISE EXCEPTION 'terms are gone' USING ERRCODE = 'TG005';
    END IF;`;

const checkTermsSql = (schema: string): string => `
CREATE FUNCTION ${schema}.check_terms_1(p_node int, k_terms bigint[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $terms$
  BEGIN
    ${CHECK_TERMS_SQL(schema)}
  END $terms$;
`;

const applyFunctionSql = (schema: string): string => `
CREATE FUNCTION ${schema}.apply_batch_1(${APPLY_BATCH_ARGUMENTS.map((each) => each.join(" ")).join(", ")})
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $gate$
#variable_conflict use_column
DECLARE
  t bigint := coalesce(p_at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  k int; fits boolean; back boolean; fresh boolean; states text; places tid[]; versions text; was record; setting text;
BEGIN
  -- An assignment needs no separate statement, as PERFORM would.
  setting := set_config('plan_cache_mode', 'force_generic_plan', true);
  setting := set_config('lock_timeout', '700', true);
  -- Small tables have more dead rows than live rows, and a sequential scan would read them all.
  setting := set_config('enable_seqscan', 'off', true);
  IF p_later THEN setting := set_config('synchronous_commit', 'off', true); END IF;
  SELECT f.keys || ' ' || f.accounts INTO versions FROM ${schema}.change_counter f WHERE f.one;
  IF NOT p_sure AND cardinality(m_id) > 0 THEN
    SELECT bool_and(${FITS_SQL}), bool_or(${NEEDS_RULES_SQL}), bool_or(m.id IS NULL)
      INTO fits, back, fresh FROM ${METER_DELTAS_SQL} LEFT JOIN ${meterLookupSql(schema)} ON true;
    IF back THEN RETURN 'look;' || versions || ';' || t; END IF;
    IF NOT fits THEN
      -- A reserve that was accepted before is not rejected when the batch is sent again.
      IF EXISTS (SELECT 1 FROM unnest(e_kind, e_attempt, e_started_at) AS o(kind, attempt, started_at)
          JOIN ${schema}.ledger_row e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0 WHERE o.kind = 0) THEN
        RETURN 'look;' || versions || ';' || t;
      END IF;
      SELECT string_agg(${METER_STATE_SQL}, ';' ORDER BY x.ord) INTO states FROM ${METER_DELTAS_SQL} LEFT JOIN ${meterLookupSql(schema)} ON true;
      RETURN 'full;' || versions || ';' || t || ';' || states;
    END IF;
  END IF;
  UPDATE ${schema}.node SET n = p_n, head = p_hash, last_heartbeat = clock_timestamp(), seen_versions = versions
    WHERE epoch = p_node AND n = p_n - 1 AND state = 'live';
  IF NOT FOUND THEN
    SELECT n, head, state INTO was FROM ${schema}.node WHERE epoch = p_node;
    IF was.n = p_n AND was.head = p_hash THEN RETURN 'done;' || versions || ';' || t; END IF;
    RETURN CASE WHEN was.state = 'live' THEN 'behind' ELSE 'fenced' END;
  END IF;
  IF cardinality(s_attempt) > 0 THEN
    -- Only the attempt may select an index. An index on the node would also find ended calls until they are vacuumed.
    DELETE FROM ${schema}.open_call WHERE attempt = ANY (s_attempt) AND node + 0 = p_node;
    GET DIAGNOSTICS k = ROW_COUNT;
    IF k < cardinality(s_attempt) THEN RAISE EXCEPTION 'not open' USING ERRCODE = 'TG003'; END IF;
  END IF;
  IF cardinality(g_attempt) > 0 THEN
    UPDATE ${schema}.open_call o SET usage = g.usage, cost = g.cost
      FROM unnest(g_attempt, g_usage, g_cost) AS g(attempt, usage, cost) WHERE o.attempt = g.attempt AND o.attempt = ANY (g_attempt);
  END IF;
  IF cardinality(e_kind) > 0 THEN
    INSERT INTO ${schema}.open_call (attempt, node, started_at)
      SELECT e.attempt, p_node, e.started_at FROM unnest(e_kind, e_attempt, e_started_at) AS e(kind, attempt, started_at) WHERE e.kind = 0;
    IF t_new <> '' THEN
      INSERT INTO ${schema}.terms (node, id, ${TERMS_COLUMNS.join(", ")}) SELECT p_node, t.*
        FROM ${termsRecordsetSql("t_new")};
    END IF;
    ${CHECK_TERMS_SQL(schema)}
    INSERT INTO ${schema}.ledger_row (node, n, i, ${withoutPrefix(ENTRY_ARGUMENTS)})
      SELECT p_node, p_n, e.ord - 1, ${ENTRY_ARGUMENTS.map((name) => `e.${name.slice(2)}`).join(", ")}
      FROM unnest(${ENTRY_ARGUMENTS.join(", ")}) WITH ORDINALITY AS e(${withoutPrefix(ENTRY_ARGUMENTS)}, ord);
  END IF;
  INSERT INTO ${schema}.batch (node, n, at, hash, entries) VALUES (p_node, p_n, clock_timestamp(), p_hash, cardinality(e_kind));
  IF cardinality(m_id) > 0 THEN
    IF fresh THEN PERFORM ${schema}.lock_meters_1(m_id); END IF;
    -- Locks the meters in the order in which they were sent, and returns their states.
    SELECT bool_and(${FITS_SQL}), bool_or(${NEEDS_RULES_SQL}), string_agg(${METER_STATE_SQL}, ';'), array_agg(m.place)
      INTO fits, back, states, places FROM ${METER_DELTAS_SQL} CROSS JOIN ${meterLookupSql(schema, "FOR NO KEY UPDATE")};
    IF back OR fits IS NOT TRUE OR cardinality(places) < cardinality(m_id) THEN RAISE EXCEPTION 'full' USING ERRCODE = 'TG002'; END IF;
    UPDATE ${schema}.meter m SET
        level = CASE WHEN x.period = 0 THEN m.level + x.used ELSE ${DRAINED_LEVEL_SQL} + x.take * x.period END,
        reserved = CASE WHEN x.period = 0 THEN m.reserved - x.unhold + x.take ELSE 0 END,
        at = CASE WHEN x.period = 0 AND x.idle = 0 THEN m.at ELSE greatest(m.at, t) END,
        max = coalesce(x.max, m.max),
        peak = CASE WHEN x.period = 0 THEN greatest(m.peak, m.level + x.used) ELSE 0 END
      FROM (SELECT * FROM unnest(places, m_max, m_period, m_idle, m_take, m_unhold, m_used)
        AS x(place, max, period, idle, take, unhold, used) LIMIT cardinality(m_id)) x WHERE m.ctid = x.place;
  END IF;
  RETURN 'ok;' || versions || ';' || t || coalesce(';' || states, '');
END $gate$;
`;

/** Returns SQL for heartbeats and the detection of expired nodes. */
const heartbeatSql = (schema: string): string => `
CREATE FUNCTION ${schema}.heartbeat_1(p_node int, p_dead boolean, p_info text, p_clock bigint)
RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER AS $beat$
#variable_conflict use_column
DECLARE moment timestamptz := clock_timestamp(); t bigint := floor(extract(epoch FROM moment) * 1000)::bigint; is_live boolean; silent boolean; versions text; gone text[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT f.keys || ' ' || f.accounts INTO versions FROM ${schema}.change_counter f;
  SELECT last_heartbeat + lease < moment INTO silent FROM ${schema}.node WHERE epoch = p_node;
  UPDATE ${schema}.node SET last_heartbeat = clock_timestamp(), seen_versions = versions, info = coalesce(p_info, info), clock_ahead_ms = coalesce(p_clock - t, clock_ahead_ms)
    WHERE epoch = p_node AND state = 'live' RETURNING true INTO is_live;
  IF p_dead AND is_live THEN
    -- A node whose own lease expired declares no other node dead: the database was unavailable, and all nodes return at once. Both
    -- statements use one moment, or two nodes could wait for each other's row.
    UPDATE ${schema}.node SET state = 'dead' WHERE NOT silent AND state = 'live' AND epoch <> p_node AND last_heartbeat + lease < moment;
    SELECT array_agg(d.epoch::text) INTO gone FROM ${schema}.node d
      WHERE d.state <> 'live' AND EXISTS (SELECT 1 FROM ${schema}.open_call o WHERE o.node = d.epoch AND o.job IS DISTINCT FROM o.attempt);
  END IF;
  RETURN ARRAY[coalesce(is_live, false)::text, versions, t::text]
    || coalesce(gone, '{}');
END $beat$;
`;
