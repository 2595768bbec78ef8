// Defines the SQL view `entry`, one row per entry, for operators who read the file with other
// tools.

/**
 * Returns the SQL for a field of the terms of a row. Row kinds: `r` is a reserve, `s` a settle, `a`
 * an adjustment.
 */
const termsColumn = (i: number, as = "->>"): string => `b.terms -> (r.value ->> 5) ${as} ${i}`;
const byRowKind = (kinds: { [kind: string]: string }, otherwise: string): string =>
  `CASE r.value ->> 0 ${Object.entries(kinds)
    .map(([kind, is]) => `WHEN '${kind}' THEN ${is}`)
    .join(" ")} ELSE ${otherwise} END`;
const textColumn = (i: number): string => `r.value ->> ${i}`;
const integerColumn = (i: number): string => `CAST(r.value ->> ${i} AS INTEGER)`;
const jsonColumn = (i: number): string => `nullif(r.value -> ${i}, 'null')`;

const COLUMNS = {
  seq: "b.first + r.key",
  kind: byRowKind({ r: "'reserve'", s: "'settle'" }, "'adjust'"),
  attempt: textColumn(2),
  request: textColumn(3),
  n: textColumn(4),
  at: textColumn(1),
  instance: "b.instance",
  key: termsColumn(0),
  provider: termsColumn(1),
  model: termsColumn(2),
  protocol: termsColumn(3),
  credential: termsColumn(4),
  privacy: termsColumn(5),
  labels: `(SELECT json_group_object(l.key, coalesce((SELECT w.text ->> '$' FROM salted_text w WHERE w.hash = l.value), 'erased')) FROM json_each(${termsColumn(6, "->")}) l)`,
  account: termsColumn(9),
  price: termsColumn(7),
  client_request: byRowKind({ r: `nullif(${termsColumn(8, "->")}, 'null')` }, "NULL"),
  meter_amounts: byRowKind({ r: `coalesce(${jsonColumn(7)}, '[]')` }, "'[]'"),
  hold: byRowKind({ a: "NULL" }, integerColumn(6)),
  usage: byRowKind({ r: "'{}'", a: jsonColumn(6) }, jsonColumn(10)),
  cost: byRowKind({ r: "NULL", a: integerColumn(7) }, integerColumn(8)),
  state: byRowKind({ r: "'open'", s: textColumn(7) }, "'exact'"),
  outcome: byRowKind({ r: "'open'", s: textColumn(9) }, "'adjusted'"),
  upstream_id: byRowKind({ s: textColumn(11) }, "NULL"),
  upstream_cost: byRowKind({ s: integerColumn(12) }, "NULL"),
  parts: byRowKind({ s: jsonColumn(15) }, "NULL"),
  finish: byRowKind({ s: textColumn(13) }, "NULL"),
  ms: byRowKind({ s: jsonColumn(14) }, "NULL"),
  reason: byRowKind({ a: textColumn(8) }, "NULL"),
  actor: byRowKind({ a: textColumn(9) }, "NULL"),
};

const columns = Object.entries(COLUMNS).map(([column, of]) => `${of} AS ${column}`);

export const ENTRY_VIEW_SQL = `
  CREATE VIEW entry AS SELECT ${columns.join(", ")} FROM (
    SELECT seq AS first, instance, terms, rows FROM retained_reserve UNION ALL
    SELECT first, instance, terms, rows FROM batch WHERE first > coalesce((SELECT last FROM checkpoint), 0)
  ) b, json_each(b.rows) r WHERE r.value ->> 0 <> 'n';
  CREATE TRIGGER entry_no_update INSTEAD OF UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER entry_no_delete INSTEAD OF DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
`;
