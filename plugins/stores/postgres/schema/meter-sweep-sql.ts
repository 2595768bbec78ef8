// Members of groups, and the removal of meters that no longer have any effect.
//
// The scope of a member contains its group and its idle time, so both are read from the ID of the
// meter: unit|per|start|~group~idle minutes~member.

/** The start of the ID of a member's meter, as a pattern. */
const MEMBER_SQL = String.raw`m.id ~ '^[a-z_]+\|[a-z]+\|[0-9]+\|~'`;
const IDLE_MS_SQL = "split_part(m.id, '~', 3)::bigint * 60000";
const PER_SQL = "split_part(m.id, '|', 2)";
/** End of a calendar window. A month ends at the latest 31 days after its start. */
const END_SQL = `split_part(m.id, '|', 3)::bigint + CASE ${PER_SQL} WHEN 'day' THEN 86400000 WHEN 'week' THEN 604800000 ELSE 2678400000 END`;
/** Windows are kept for two additional days, in case the clock is set back. */
const GRACE_MS = 172_800_000;
/** Rates of keys that are in use are not removed and created again all the time. */
const RATE_REST_MS = 86_400_000;

/** Whether a meter can be removed without any effect. It reserves nothing, and no lease is taken on it. */
const isIdleSql = (schema: string): string => `m.reserved = 0
  AND CASE ${PER_SQL}
    WHEN 'minute' THEN m.at < t - ${RATE_REST_MS}
    WHEN 'hour' THEN m.at < t - ${RATE_REST_MS}
    WHEN 'open' THEN true
    WHEN 'total' THEN ${MEMBER_SQL}
    ELSE ${END_SQL} + ${GRACE_MS} < t END
  AND (NOT ${MEMBER_SQL} OR m.at <= t - ${IDLE_MS_SQL})
  AND NOT EXISTS (SELECT 1 FROM ${schema}.budget_lease i WHERE i.meter = m.id)`;

/** Returns the SQL for the index of groups and for the function that removes meters. */
export const meterSweepSql = (schema: string): string => `
CREATE INDEX meter_group ON ${schema}.meter (split_part(id, '~', 2)) WHERE position('|~' IN id) > 0;

-- Looks at the next p_limit meters after p_after, and removes those that have no effect. Returns the last ID, or nothing after the last meter.
-- A meter that another transaction has locked is in use and is skipped.
CREATE FUNCTION ${schema}.sweep_meters_1(p_after text, p_limit int, OUT reached text, OUT removed bigint) LANGUAGE plpgsql SECURITY DEFINER AS $sweep$
#variable_conflict use_column
DECLARE t bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint; looked bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT max(p.id COLLATE "C"), count(*) INTO reached, looked
    FROM (SELECT id FROM ${schema}.meter WHERE id > p_after COLLATE "C" ORDER BY id LIMIT p_limit) p;
  WITH gone AS MATERIALIZED (SELECT m.id FROM ${schema}.meter m
      WHERE m.id > p_after COLLATE "C" AND m.id <= reached COLLATE "C" AND ${isIdleSql(schema)} FOR UPDATE SKIP LOCKED),
    deleted AS (DELETE FROM ${schema}.meter m USING gone g WHERE m.id = g.id RETURNING 1)
    SELECT count(*) INTO removed FROM deleted;
  IF looked < p_limit THEN reached := NULL; END IF;
END $sweep$;
`;

/**
 * Returns SQL that locks the groups $1 until the end of the transaction, so that two gateways
 * cannot take the last place of a group.
 */
export const lockGroupsSql = (schema: string): string =>
  `SELECT pg_advisory_xact_lock(hashtextextended('${schema} ' || g.name, 0)) FROM (SELECT name FROM unnest($1::text[]) u(name) ORDER BY name COLLATE "C") g`;

/** Scope of the member that a meter belongs to. */
const SCOPE_SQL = "substr(m.id, position('|~' IN m.id) + 1)";

/** Returns the condition for a meter that keeps its member in the group at a time. */
const keepsMemberSql = (time: string): string => `${MEMBER_SQL}
      AND (m.reserved > 0 OR m.at > ${time} - ${IDLE_MS_SQL}
        OR ${PER_SQL} IN ('day', 'week', 'month') AND m.level > 0 AND ${END_SQL} > ${time})`;

/** Returns the condition for the meters that keep members in the groups $1 at a time. */
const presentMembersSql = (
  time: string,
): string => `split_part(m.id, '~', 2) = ANY ($1::text[]) AND position('|~' IN m.id) > 0
      AND ${keepsMemberSql(time)}`;

/**
 * Returns SQL that counts the members of the groups $1 at the time $3, without the scopes $2.
 * A member is present during its idle time, and as long as one of its windows counts something.
 */
export const countMembersSql = (schema: string): string =>
  `SELECT split_part(m.id, '~', 2) AS name, count(DISTINCT ${SCOPE_SQL})::text AS members
    FROM ${schema}.meter m
    WHERE ${presentMembersSql("$3::bigint")}
      AND NOT ${SCOPE_SQL} = ANY ($2::text[])
    GROUP BY 1`;

/** Returns SQL that lists the members of the groups $1 at the time $2, by their scopes. */
export const listMembersSql = (schema: string): string =>
  `SELECT DISTINCT split_part(m.id, '~', 2) AS name, ${SCOPE_SQL} AS scope
    FROM ${schema}.meter m WHERE ${presentMembersSql("$2::bigint")}`;

/** Returns SQL that lists which of the meters $1 keep their members in the group at the time $2. */
export const presentMetersSql = (schema: string): string =>
  `SELECT m.id FROM ${schema}.meter m
    WHERE m.id = ANY ($1::text[]) AND ${keepsMemberSql("$2::bigint")}`;
