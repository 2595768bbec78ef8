// The tables, as the first form makes them. Rows of calls lie in months of when their call began, so that all that is said of one call lies
// together and an index can refuse to say it twice. What calls have in common, their terms, is written once for each node.

import { BOOKED, COUNTED, TERMS } from "./columns.ts";
import { sumTables } from "./summing.ts";

/** `s`: the schema. */
export const tables = (s: string): string => rowsIn(s) + recordsIn(s) + guards(s);

const rowsIn = (s: string): string => `
CREATE TABLE ${s}.fleet (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  keys bigint NOT NULL DEFAULT 0, accounts bigint NOT NULL DEFAULT 0, changed timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO ${s}.fleet DEFAULT VALUES;

CREATE TABLE ${s}.node (
  epoch int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL, about text, form int NOT NULL DEFAULT 1, ahead bigint, seen text,
  state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'left', 'dead')),
  n bigint NOT NULL DEFAULT 0, head bytea NOT NULL DEFAULT '',
  alive timestamptz NOT NULL DEFAULT clock_timestamp(), lease interval NOT NULL) WITH (fillfactor = 20);
CREATE INDEX node_of ON ${s}.node (id);

CREATE TABLE ${s}.meter (
  id text COLLATE "C" PRIMARY KEY,
  level numeric NOT NULL DEFAULT 0, held numeric NOT NULL DEFAULT 0, at bigint NOT NULL DEFAULT 0,
  max numeric NOT NULL DEFAULT 0, peak numeric NOT NULL DEFAULT 0, told numeric NOT NULL DEFAULT 0)
  WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${s}.open (
  attempt text COLLATE "C" PRIMARY KEY, node int NOT NULL, began bigint NOT NULL, usage text, cost bigint)
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_of ON ${s}.open (node);

CREATE TABLE ${s}.batch (
  node int NOT NULL, n bigint NOT NULL, at timestamptz NOT NULL, hash bytea NOT NULL, entries int NOT NULL,
  pos bigint, link bytea) PARTITION BY RANGE (at);
CREATE INDEX batch_of ON ${s}.batch (node, n);
CREATE INDEX batch_at ON ${s}.batch (pos) WHERE pos IS NOT NULL;
CREATE INDEX batch_new ON ${s}.batch (node, n) WHERE pos IS NULL;
CREATE TABLE ${s}.batch_other PARTITION OF ${s}.batch DEFAULT;

CREATE TABLE ${s}.terms (
  node int NOT NULL, id bigint NOT NULL, live boolean NOT NULL DEFAULT true,
  key text COLLATE "C" NOT NULL, account text, provider text NOT NULL, model text NOT NULL, credential text NOT NULL,
  frontend text NOT NULL, price text, how text, labels text, salt text, PRIMARY KEY (node, id));
CREATE INDEX terms_key ON ${s}.terms (key);

-- Wide columns first: none of them has to be filled up to where it may begin.
CREATE TABLE ${s}.booked (
  n bigint NOT NULL, terms bigint NOT NULL, began bigint NOT NULL, at bigint NOT NULL, cost bigint, hold bigint,
  ${COUNTED.map((unit) => `${unit} bigint, `).join("")}
  node int NOT NULL, i int NOT NULL, kind smallint NOT NULL, state text NOT NULL, outcome text NOT NULL,
  attempt text COLLATE "C" NOT NULL, nth text COLLATE "C" NOT NULL, up text, usage text, rest text) PARTITION BY RANGE (began);
CREATE UNIQUE INDEX booked_once ON ${s}.booked (attempt, began, kind, nth);
CREATE INDEX booked_of ON ${s}.booked (node, n);
CREATE INDEX booked_terms ON ${s}.booked (node, terms);
CREATE INDEX booked_at ON ${s}.booked USING brin (at) WITH (autosummarize = on);
CREATE INDEX booked_units ON ${s}.booked (at) WHERE usage IS NOT NULL;
CREATE TABLE ${s}.booked_other PARTITION OF ${s}.booked DEFAULT;

-- A row with its terms, as reports and readers see it.
CREATE VIEW ${s}.entry AS SELECT b.node, b.n, b.i, ${BOOKED.map((name) => `b.${name}`).join(", ")}, ${TERMS.map((name) => `t.${name}`).join(", ")}
  FROM ${s}.booked b JOIN ${s}.terms t ON t.node = b.node AND t.id = b.terms;

CREATE TABLE ${s}.note (
  node int NOT NULL, n bigint NOT NULL, i int NOT NULL,
  kind text NOT NULL, id text NOT NULL, at bigint NOT NULL, text text NOT NULL, salt text NOT NULL,
  PRIMARY KEY (node, n, i));
CREATE INDEX note_of ON ${s}.note (kind, id);

CREATE TABLE ${s}.base (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), pos bigint NOT NULL, sums bigint NOT NULL, text text NOT NULL);
CREATE TABLE ${s}.sums (n bigint PRIMARY KEY, quarter bigint NOT NULL, text text NOT NULL, hash text NOT NULL);
CREATE INDEX sums_at ON ${s}.sums (quarter);
`;

/** What commands have written, and what is worked out of rows. */
const recordsIn = (s: string): string => `
CREATE TABLE ${s}.key (digest text COLLATE "C" PRIMARY KEY, place text COLLATE "C" NOT NULL UNIQUE, record text NOT NULL);
CREATE TABLE ${s}.account (id text COLLATE "C" PRIMARY KEY, record text NOT NULL);
CREATE TABLE ${s}.price (hash text PRIMARY KEY, price text NOT NULL);
CREATE TABLE ${s}.audit (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, entry text NOT NULL, ended text);
CREATE TABLE ${s}.shared (
  name text PRIMARY KEY, value bytea NOT NULL CHECK (length(value) <= 1048576));

CREATE TABLE ${s}.chain (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  pos bigint NOT NULL DEFAULT 1, link bytea NOT NULL DEFAULT '', closed timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 20);
INSERT INTO ${s}.chain DEFAULT VALUES;

CREATE TABLE ${s}.summed (one boolean PRIMARY KEY DEFAULT true CHECK (one), upto bigint NOT NULL DEFAULT 1);
INSERT INTO ${s}.summed DEFAULT VALUES;
${sumTables(s)}
`;

/** What was written stays. */
const guards = (s: string): string => `
CREATE FUNCTION ${s}.refuse() RETURNS trigger LANGUAGE plpgsql AS $refuse$
BEGIN
  -- The owner's own functions put sums in the place of old rows, and take a person out of them.
  IF current_setting('tollgate.keeping', true) = 'on' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'rows of the ledger are never changed' USING ERRCODE = 'TG001';
END $refuse$;
CREATE TRIGGER booked_stays BEFORE UPDATE OR DELETE ON ${s}.booked FOR EACH ROW EXECUTE FUNCTION ${s}.refuse();
CREATE TRIGGER terms_stay BEFORE UPDATE OR DELETE ON ${s}.terms FOR EACH ROW EXECUTE FUNCTION ${s}.refuse();
CREATE TRIGGER note_stays BEFORE UPDATE OR DELETE ON ${s}.note FOR EACH ROW EXECUTE FUNCTION ${s}.refuse();
CREATE TRIGGER batch_stays BEFORE DELETE OR UPDATE OF node, n, at, hash, entries ON ${s}.batch
  FOR EACH ROW EXECUTE FUNCTION ${s}.refuse();
`;
