// The tables, as the first version makes them. Rows of calls lie in months of when their call began, so that all that is said of one call lies
// together and an index can refuse to say it twice. What calls have in common, their terms, is written once for each node.

import { ROW_COLUMNS, UNIT_COLUMNS, TERMS_COLUMNS } from "../rows/columns.ts";
import { rollupTablesSql } from "./rollup-sql.ts";

/** `s`: the schema. */
export const tablesSql = (schema: string): string =>
  ledgerTablesSql(schema) + recordTablesSql(schema) + appendOnlyTriggersSql(schema);

const ledgerTablesSql = (schema: string): string => `
CREATE TABLE ${schema}.fleet (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL DEFAULT 0, accounts bigint NOT NULL DEFAULT 0, changed timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO ${schema}.fleet DEFAULT VALUES;

CREATE TABLE ${schema}.node (
  epoch int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL, about text, schema_version int NOT NULL DEFAULT 1, ahead bigint, seen text,
  state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'left', 'dead')),
  n bigint NOT NULL DEFAULT 0, head bytea NOT NULL DEFAULT '',
  alive timestamptz NOT NULL DEFAULT clock_timestamp(), lease interval NOT NULL) WITH (fillfactor = 20);
CREATE INDEX node_of ON ${schema}.node (id);

CREATE TABLE ${schema}.meter (
  id text COLLATE "C" PRIMARY KEY,
  level numeric NOT NULL DEFAULT 0, held numeric NOT NULL DEFAULT 0, at bigint NOT NULL DEFAULT 0,
  max numeric NOT NULL DEFAULT 0, peak numeric NOT NULL DEFAULT 0, told numeric NOT NULL DEFAULT 0)
  WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${schema}.open (
  attempt text COLLATE "C" PRIMARY KEY, node int NOT NULL, began bigint NOT NULL, usage text, cost bigint)
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_of ON ${schema}.open (node);

CREATE TABLE ${schema}.batch (
  node int NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL, hash bytea NOT NULL, entries int NOT NULL,
  pos bigint, link bytea) PARTITION BY RANGE (at);
CREATE INDEX batch_of ON ${schema}.batch (node, n);
CREATE INDEX batch_at ON ${schema}.batch (pos) WHERE pos IS NOT NULL;
CREATE INDEX batch_new ON ${schema}.batch (node, n) WHERE pos IS NULL;
CREATE TABLE ${schema}.batch_other PARTITION OF ${schema}.batch DEFAULT;

CREATE TABLE ${schema}.terms (
  node int NOT NULL, id bigint NOT NULL, live boolean NOT NULL DEFAULT true,
  key text COLLATE "C" NOT NULL, account text, provider text NOT NULL, model text NOT NULL, credential text NOT NULL,
  frontend text NOT NULL, price text, how text, labels text, salt text, PRIMARY KEY (node, id));
CREATE INDEX terms_key ON ${schema}.terms (key);

-- Wide columns first: none of them has to be filled up to where it may begin.
CREATE TABLE ${schema}.booked (
  n bigint NOT NULL, terms bigint NOT NULL, began bigint NOT NULL, at bigint NOT NULL, cost bigint, hold bigint,
  ${UNIT_COLUMNS.map((unit) => `${unit} bigint, `).join("")}
  node int NOT NULL, i int NOT NULL, kind smallint NOT NULL, state text NOT NULL, outcome text NOT NULL,
  attempt text COLLATE "C" NOT NULL, nth text COLLATE "C" NOT NULL, up text, usage text, rest text) PARTITION BY RANGE (began);
CREATE UNIQUE INDEX booked_once ON ${schema}.booked (attempt, began, kind, nth);
CREATE INDEX booked_of ON ${schema}.booked (node, n);
CREATE INDEX booked_terms ON ${schema}.booked (node, terms);
CREATE INDEX booked_at ON ${schema}.booked USING brin (at) WITH (autosummarize = on);
CREATE INDEX booked_units ON ${schema}.booked (at) WHERE usage IS NOT NULL;
CREATE TABLE ${schema}.booked_other PARTITION OF ${schema}.booked DEFAULT;

-- A row with its terms, as reports and readers see it.
CREATE VIEW ${schema}.entry AS SELECT b.node, b.n, b.i, ${ROW_COLUMNS.map((name) => `b.${name}`).join(", ")}, ${TERMS_COLUMNS.map((name) => `t.${name}`).join(", ")}
  FROM ${schema}.booked b JOIN ${schema}.terms t ON t.node = b.node AND t.id = b.terms;

CREATE TABLE ${schema}.note (
  node int NOT NULL, n bigint NOT NULL, i int NOT NULL,
  kind text NOT NULL, id text NOT NULL, at bigint NOT NULL, text text NOT NULL, salt text NOT NULL,
  PRIMARY KEY (node, n, i));
CREATE INDEX note_of ON ${schema}.note (kind, id);

CREATE TABLE ${schema}.base (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), pos bigint NOT NULL, sums bigint NOT NULL, text text NOT NULL);
CREATE TABLE ${schema}.sums (n bigint PRIMARY KEY, quarter bigint NOT NULL, text text NOT NULL, hash text NOT NULL);
CREATE INDEX sums_at ON ${schema}.sums (quarter);
`;

/** What commands have written, and what is worked out of rows. */
const recordTablesSql = (schema: string): string => `
CREATE TABLE ${schema}.key (digest text COLLATE "C" PRIMARY KEY, place text COLLATE "C" NOT NULL UNIQUE, record text NOT NULL);
CREATE TABLE ${schema}.account (id text COLLATE "C" PRIMARY KEY, record text NOT NULL);
CREATE TABLE ${schema}.price (hash text PRIMARY KEY, price text NOT NULL);
CREATE TABLE ${schema}.audit (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, entry text NOT NULL, ended text);
CREATE TABLE ${schema}.shared (
  name text PRIMARY KEY, value bytea NOT NULL CHECK (length(value) <= 1048576));

CREATE TABLE ${schema}.chain (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  pos bigint NOT NULL DEFAULT 1, link bytea NOT NULL DEFAULT '', closed timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 20);
INSERT INTO ${schema}.chain DEFAULT VALUES;

CREATE TABLE ${schema}.summed (one boolean PRIMARY KEY DEFAULT true CHECK (one), upto bigint NOT NULL DEFAULT 1);
INSERT INTO ${schema}.summed DEFAULT VALUES;
${rollupTablesSql(schema)}
`;

/** What was written stays. */
const appendOnlyTriggersSql = (schema: string): string => `
CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $refuse$
BEGIN
  -- The owner's own functions put sums in the place of old rows, and take a person out of them.
  IF current_setting('tollgate.keeping', true) = 'on' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'rows of the ledger are never changed' USING ERRCODE = 'TG001';
END $refuse$;
CREATE TRIGGER booked_stays BEFORE UPDATE OR DELETE ON ${schema}.booked FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse();
CREATE TRIGGER terms_stay BEFORE UPDATE OR DELETE ON ${schema}.terms FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse();
CREATE TRIGGER note_stays BEFORE UPDATE OR DELETE ON ${schema}.note FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse();
CREATE TRIGGER batch_stays BEFORE DELETE OR UPDATE OF node, n, at, hash, entries ON ${schema}.batch
  FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse();
`;
