// Assigns sequence numbers to entries and links all batches of all nodes into one global chain. A
// row lock ensures that only one gateway does this at a time. An identity column would not work:
// readers that page by it would miss rows with lower numbers that are committed later.

/**
 * Minimum interval between background runs. A scan for new batches has the same cost for one batch
 * as for many.
 */
const SEQUENCE_INTERVAL = "200 milliseconds";

/** Returns the SQL for the sequencer and for the creation of partitions. */
export const sequencerSql = (schema: string): string => `
-- Returns NULL if another gateway assigns numbers now, or did so within the interval.
CREATE FUNCTION ${schema}.assign_sequence_1(p_most int, p_wait boolean) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $close$
#variable_conflict use_column
DECLARE last record; b record; number bigint; link bytea; many bigint := 0;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF p_wait THEN
    IF NOT EXISTS (SELECT 1 FROM ${schema}.batch WHERE seq IS NULL) THEN RETURN 0; END IF;
    SELECT next_seq, head INTO last FROM ${schema}.chain FOR UPDATE;
  ELSE
    SELECT next_seq, head INTO last FROM ${schema}.chain WHERE sequenced_at NOT BETWEEN clock_timestamp() - interval '${SEQUENCE_INTERVAL}' AND clock_timestamp() FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NULL; END IF;
  END IF;
  number := last.next_seq; link := last.head;
  -- The batches of a node stay in their order, even if its clock went back.
  FOR b IN SELECT node, n, at, hash, entries FROM
      (SELECT *, max(at) OVER (PARTITION BY node ORDER BY n) AS late FROM ${schema}.batch WHERE seq IS NULL) fresh
      ORDER BY late, node, n LIMIT p_most LOOP
    link := sha256(link || int4send(b.node) || int8send(b.n) || b.hash);
    UPDATE ${schema}.batch SET seq = number, chain_hash = link WHERE node = b.node AND n = b.n AND at = b.at;
    number := number + b.entries; many := many + 1;
  END LOOP;
  UPDATE ${schema}.chain SET next_seq = number, head = link, sequenced_at = clock_timestamp();
  RETURN many;
END $close$;

-- Creates the missing partitions of the month of p_at.
CREATE FUNCTION ${schema}.create_partition_1(p_at timestamptz) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $month$
DECLARE month timestamptz := date_trunc('month', p_at, 'UTC'); next timestamptz; name text;
BEGIN
  next := date_trunc('month', month + interval '32 days', 'UTC');
  name := to_char(month AT TIME ZONE 'UTC', '"_"YYYY_MM');
  IF to_regclass('${schema}.ledger_row' || name) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE ${schema}.%I PARTITION OF ${schema}.ledger_row FOR VALUES FROM (%s) TO (%s)', 'ledger_row' || name,
    extract(epoch FROM month)::bigint * 1000, extract(epoch FROM next)::bigint * 1000);
  EXECUTE format('CREATE TABLE ${schema}.%I PARTITION OF ${schema}.batch FOR VALUES FROM (%L) TO (%L)', 'batch' || name, month, next);
EXCEPTION
  -- The default partition has rows of that month, or another gateway creates the partition now.
  WHEN check_violation OR duplicate_table OR lock_not_available THEN NULL;
END $month$;

CREATE FUNCTION ${schema}.create_partitions_1(p_ahead int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $months$
BEGIN
  FOR i IN 0..p_ahead LOOP
    -- Months are added in UTC. In a zone west of Greenwich, the last evening of a month plus one month is the same UTC month.
    PERFORM ${schema}.create_partition_1((date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + make_interval(months => i)) AT TIME ZONE 'UTC');
  END LOOP;
END $months$;
`;
