// Slices: a part of a budget that is set aside for one node, to be spent while the database is away. It stands in what the meter holds, so every
// rule that looks at a meter sees it taken. It goes back when its node says so, and never because the node is silent: what it has spent
// meanwhile is not known. A recall asks for slices of meters at which a client was refused.

/** For how long a recalled meter is not sliced again. */
const RECALLED = "interval '1 minute'";

/** `s`: the schema. */
export const slicing = (s: string): string => `
CREATE TABLE ${s}.slice (
  meter text COLLATE "C" NOT NULL, node text NOT NULL, amount numeric NOT NULL CHECK (amount > 0), PRIMARY KEY (meter, node));
CREATE INDEX slice_of ON ${s}.slice (node);
CREATE TABLE ${s}.recall (meter text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL);

CREATE FUNCTION ${s}.slice_1(p_node text, p_share numeric, m_id text[], m_max numeric[])
RETURNS TABLE (id text, part numeric) LANGUAGE plpgsql SECURITY DEFINER AS $slice$
BEGIN
  PERFORM set_config('lock_timeout', '700', true);
  -- Meters first, in the order of their names, as the gate does: never crosswise.
  PERFORM 1 FROM ${s}.meter m WHERE m.id = ANY (m_id) ORDER BY m.id FOR NO KEY UPDATE;
  RETURN QUERY WITH room AS (
      SELECT m.id, floor((x.max - m.level - m.held) * p_share) AS part
        FROM unnest(m_id, m_max) AS x(id, max) JOIN ${s}.meter m ON m.id = x.id
        WHERE NOT EXISTS (SELECT 1 FROM ${s}.recall r WHERE r.meter = m.id AND r.at > clock_timestamp() - ${RECALLED})
          AND NOT EXISTS (SELECT 1 FROM ${s}.slice i WHERE i.meter = m.id AND i.node = p_node)),
    taken AS (INSERT INTO ${s}.slice (meter, node, amount) SELECT r.id, p_node, r.part FROM room r WHERE r.part > 0 RETURNING meter, amount),
    held AS (UPDATE ${s}.meter m SET held = m.held + t.amount FROM taken t WHERE m.id = t.meter)
    SELECT t.meter, t.amount FROM taken t;
END $slice$;

CREATE FUNCTION ${s}.unslice_1(p_node text, m_id text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $unslice$
DECLARE ids text[] := coalesce(m_id, ARRAY(SELECT i.meter FROM ${s}.slice i WHERE i.node = p_node)); many bigint;
BEGIN
  PERFORM set_config('lock_timeout', '700', true);
  PERFORM 1 FROM ${s}.meter m WHERE m.id = ANY (ids) ORDER BY m.id FOR NO KEY UPDATE;
  WITH gone AS (DELETE FROM ${s}.slice i WHERE i.node = p_node AND i.meter = ANY (ids) RETURNING i.meter, i.amount),
    given AS (UPDATE ${s}.meter m SET held = m.held - g.amount FROM gone g WHERE m.id = g.meter)
    SELECT count(*) INTO many FROM gone;
  RETURN many;
END $unslice$;

CREATE FUNCTION ${s}.recall_1(m_id text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $recall$
DECLARE many bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO ${s}.recall (meter, at)
    SELECT x.id, clock_timestamp() FROM unnest(m_id) AS x(id)
      WHERE EXISTS (SELECT 1 FROM ${s}.slice i WHERE i.meter = x.id) ORDER BY x.id COLLATE "C"
    ON CONFLICT (meter) DO UPDATE SET at = excluded.at;
  GET DIAGNOSTICS many = ROW_COUNT;
  RETURN many;
END $recall$;
`;

/** Slices of a node that another one needs. */
export const recalled = (s: string): string =>
  `SELECT (SELECT count(*) FROM ${s}.node w WHERE w.state = 'live')::text AS live,
    (SELECT coalesce(json_agg(i.meter), '[]') FROM ${s}.slice i JOIN ${s}.recall r ON r.meter = i.meter
      WHERE i.node = $1 AND r.at > clock_timestamp() - ${RECALLED})::text AS back`;
