// The tables of schema version 1. Rows are partitioned by the month in which their call began. All
// rows of a call are therefore in one partition, and a unique index can reject duplicates. The
// terms of calls are stored once per node.

import { ROW_COLUMNS, UNIT_COLUMNS, TERMS_COLUMNS } from "tollgate/store";
import { rollupTablesSql } from "./rollup-sql.ts";

/** Returns the SQL for all tables. */
export const tablesSql = (schema: string): string =>
  ledgerTablesSql(schema) + recordTablesSql(schema) + appendOnlyTriggersSql(schema);

const ledgerTablesSql = (schema: string): string => `
CREATE TABLE ${schema}.change_counter (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL DEFAULT 0, accounts bigint NOT NULL DEFAULT 0, changed timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO ${schema}.change_counter DEFAULT VALUES;

CREATE TABLE ${schema}.node (
  epoch int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL, info text, schema_version int NOT NULL DEFAULT 1, clock_ahead_ms bigint, seen_versions text,
  state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'left', 'dead')),
  n bigint NOT NULL DEFAULT 0, head bytea NOT NULL DEFAULT '',
  last_heartbeat timestamptz NOT NULL DEFAULT clock_timestamp(), lease interval NOT NULL) WITH (fillfactor = 20);
CREATE INDEX node_of ON ${schema}.node (id);

CREATE TABLE ${schema}.meter (
  id text COLLATE "C" PRIMARY KEY,
  level numeric NOT NULL DEFAULT 0, reserved numeric NOT NULL DEFAULT 0, at bigint NOT NULL DEFAULT 0,
  max numeric NOT NULL DEFAULT 0, peak numeric NOT NULL DEFAULT 0, notified_level numeric NOT NULL DEFAULT 0,
  -- IDs of the last changes of a member by operators, separated by spaces.
  changes text)
  WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${schema}.open_call (
  attempt text COLLATE "C" PRIMARY KEY, node int NOT NULL, started_at bigint NOT NULL, usage text, cost bigint,
  -- The call of the job. For the call of a job itself, also the amounts that its lines took.
  job text COLLATE "C", line_amounts text)
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_call_of ON ${schema}.open_call (node);

CREATE TABLE ${schema}.batch (
  node int NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL, hash bytea NOT NULL, entries int NOT NULL,
  seq bigint, chain_hash bytea) PARTITION BY RANGE (at);
CREATE INDEX batch_of ON ${schema}.batch (node, n);
CREATE INDEX batch_at ON ${schema}.batch (seq) WHERE seq IS NOT NULL;
CREATE INDEX batch_new ON ${schema}.batch (node, n) WHERE seq IS NULL;
CREATE TABLE ${schema}.batch_other PARTITION OF ${schema}.batch DEFAULT;

CREATE TABLE ${schema}.terms (
  node int NOT NULL, id bigint NOT NULL, live boolean NOT NULL DEFAULT true,
  key text COLLATE "C" NOT NULL, account text, provider text NOT NULL, model text NOT NULL, credential text NOT NULL,
  frontend text NOT NULL, price text, how text, labels text, salt text, PRIMARY KEY (node, id));
CREATE INDEX terms_key ON ${schema}.terms (key);

-- Wide columns come first, so that no padding is needed.
CREATE TABLE ${schema}.ledger_row (
  n bigint NOT NULL, terms bigint NOT NULL, started_at bigint NOT NULL, at bigint NOT NULL, cost bigint, hold bigint,
  ${UNIT_COLUMNS.map((unit) => `${unit} bigint, `).join("")}
  node int NOT NULL, i int NOT NULL, kind smallint NOT NULL, state text NOT NULL, outcome text NOT NULL,
  attempt text COLLATE "C" NOT NULL, qualifier text COLLATE "C" NOT NULL, upstream_id text, usage text, rest text) PARTITION BY RANGE (started_at);
CREATE UNIQUE INDEX ledger_row_once ON ${schema}.ledger_row (attempt, started_at, kind, qualifier);
CREATE INDEX ledger_row_of ON ${schema}.ledger_row (node, n);
CREATE INDEX ledger_row_terms ON ${schema}.ledger_row (node, terms);
CREATE INDEX ledger_row_at ON ${schema}.ledger_row USING brin (at) WITH (autosummarize = on);
CREATE INDEX ledger_row_units ON ${schema}.ledger_row (at) WHERE usage IS NOT NULL;
CREATE TABLE ${schema}.ledger_row_other PARTITION OF ${schema}.ledger_row DEFAULT;

-- A row with its terms, as reports and queries read it.
CREATE VIEW ${schema}.entry AS SELECT b.node, b.n, b.i, ${ROW_COLUMNS.map((name) => `b.${name}`).join(", ")}, ${TERMS_COLUMNS.map((name) => `t.${name}`).join(", ")}
  FROM ${schema}.ledger_row b JOIN ${schema}.terms t ON t.node = b.node AND t.id = b.terms;

CREATE TABLE ${schema}.note (
  node int NOT NULL, n bigint NOT NULL, i int NOT NULL,
  kind text NOT NULL, id text NOT NULL, at bigint NOT NULL, text text NOT NULL, salt text NOT NULL,
  PRIMARY KEY (node, n, i));
CREATE INDEX note_of ON ${schema}.note (kind, id);

CREATE TABLE ${schema}.checkpoint (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), next_seq bigint NOT NULL, rollups bigint NOT NULL, text text NOT NULL);
CREATE TABLE ${schema}.checkpoint_rollup (n bigint PRIMARY KEY, quarter bigint NOT NULL, text text NOT NULL, hash text NOT NULL);
CREATE INDEX checkpoint_rollup_at ON ${schema}.checkpoint_rollup (quarter);
`;

/** Returns the SQL for records that commands write, and for data derived from rows. */
const recordTablesSql = (schema: string): string => `
CREATE TABLE ${schema}.key (digest text COLLATE "C" PRIMARY KEY, sort_key text COLLATE "C" NOT NULL UNIQUE, record text NOT NULL);
CREATE TABLE ${schema}.account (id text COLLATE "C" PRIMARY KEY, record text NOT NULL);
CREATE TABLE ${schema}.price (hash text PRIMARY KEY, price text NOT NULL);
CREATE TABLE ${schema}.job (
  id text COLLATE "C" PRIMARY KEY, cursor text COLLATE "C" NOT NULL UNIQUE, kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL, account text COLLATE "C", state text NOT NULL,
  version bigint NOT NULL, owner text, due_at bigint, record text NOT NULL) WITH (fillfactor = 70);
CREATE INDEX job_due ON ${schema}.job (kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX job_account ON ${schema}.job (account, cursor);
CREATE INDEX job_key ON ${schema}.job (key, cursor);
CREATE TABLE ${schema}.audit (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, entry text NOT NULL, ended text);
CREATE TABLE ${schema}.shared (
  name text PRIMARY KEY, value bytea NOT NULL CHECK (length(value) <= 1048576));

CREATE TABLE ${schema}.chain (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  next_seq bigint NOT NULL DEFAULT 1, head bytea NOT NULL DEFAULT '', sequenced_at timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 20);
INSERT INTO ${schema}.chain DEFAULT VALUES;

CREATE TABLE ${schema}.rollup_position (one boolean PRIMARY KEY DEFAULT true CHECK (one), up_to bigint NOT NULL DEFAULT 1);
INSERT INTO ${schema}.rollup_position DEFAULT VALUES;
${rollupTablesSql(schema)}
`;

/** Returns the SQL for triggers that reject changes to written rows. */
const appendOnlyTriggersSql = (schema: string): string => `
CREATE FUNCTION ${schema}.reject_change() RETURNS trigger LANGUAGE plpgsql AS $reject$
BEGIN
  -- The functions of the owner replace old rows with rollups, and erase a person from rows.
  IF current_setting('tollgate.maintenance', true) = 'on' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'rows of the ledger are never changed' USING ERRCODE = 'TG001';
END $reject$;
CREATE TRIGGER ledger_row_append_only BEFORE UPDATE OR DELETE ON ${schema}.ledger_row FOR EACH ROW EXECUTE FUNCTION ${schema}.reject_change();
CREATE TRIGGER terms_append_only BEFORE UPDATE OR DELETE ON ${schema}.terms FOR EACH ROW EXECUTE FUNCTION ${schema}.reject_change();
CREATE TRIGGER note_append_only BEFORE UPDATE OR DELETE ON ${schema}.note FOR EACH ROW EXECUTE FUNCTION ${schema}.reject_change();
CREATE TRIGGER batch_append_only BEFORE DELETE OR UPDATE OF node, n, at, hash, entries ON ${schema}.batch
  FOR EACH ROW EXECUTE FUNCTION ${schema}.reject_change();
`;
