// The ledger for operators who read the file with other tools: an entry a row.

/** Of a row (r: a reserve, s: a settle, a: an adjustment) and of its terms. */
const term = (i: number, as = "->>"): string => `b.terms -> (r.value ->> 5) ${as} ${i}`;
const by = (kinds: { [kind: string]: string }, otherwise: string): string =>
  `CASE r.value ->> 0 ${Object.entries(kinds)
    .map(([kind, is]) => `WHEN '${kind}' THEN ${is}`)
    .join(" ")} ELSE ${otherwise} END`;
const text = (i: number): string => `r.value ->> ${i}`;
const whole = (i: number): string => `CAST(r.value ->> ${i} AS INTEGER)`;
const json = (i: number): string => `nullif(r.value -> ${i}, 'null')`;

const COLUMNS = {
  seq: "b.first + r.key",
  kind: by({ r: "'reserve'", s: "'settle'" }, "'adjust'"),
  attempt: text(2),
  request: text(3),
  n: text(4),
  at: text(1),
  instance: "b.instance",
  key: term(0),
  provider: term(1),
  model: term(2),
  protocol: term(3),
  credential: term(4),
  privacy: term(5),
  labels: `(SELECT json_group_object(l.key, coalesce((SELECT w.text ->> '$' FROM word w WHERE w.hash = l.value), 'erased')) FROM json_each(${term(6, "->")}) l)`,
  account: term(9),
  price: term(7),
  asked: by({ r: `nullif(${term(8, "->")}, 'null')` }, "NULL"),
  taken: by({ r: `coalesce(${json(7)}, '[]')` }, "'[]'"),
  hold: by({ a: "NULL" }, whole(6)),
  usage: by({ r: "'{}'", a: json(6) }, json(10)),
  cost: by({ r: "NULL", a: whole(7) }, whole(8)),
  state: by({ r: "'open'", s: text(7) }, "'exact'"),
  outcome: by({ r: "'open'", s: text(9) }, "'adjusted'"),
  upstream_id: by({ s: text(11) }, "NULL"),
  upstream_cost: by({ s: whole(12) }, "NULL"),
  parts: by({ s: json(15) }, "NULL"),
  finish: by({ s: text(13) }, "NULL"),
  ms: by({ s: json(14) }, "NULL"),
  reason: by({ a: text(8) }, "NULL"),
  actor: by({ a: text(9) }, "NULL"),
};

const columns = Object.entries(COLUMNS).map(([column, of]) => `${of} AS ${column}`);

export const VIEW = `
  CREATE VIEW entry AS SELECT ${columns.join(", ")} FROM (
    SELECT seq AS first, instance, terms, rows FROM carried UNION ALL
    SELECT first, instance, terms, rows FROM batch WHERE first > coalesce((SELECT last FROM base), 0)
  ) b, json_each(b.rows) r WHERE r.value ->> 0 <> 'n';
  CREATE TRIGGER entry_stays INSTEAD OF UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER entry_remains INSTEAD OF DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
`;
