// What the exact way writes once the book has decided, as statements that go out together.
import { fromJson, keyCursor, toJson, type Meter } from "tollgate/store";
import type { Known } from "./known.ts";
import type { Ask, Row } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { hashOf, noteLine } from "./rows.ts";
import { newSalt } from "./salts.ts";
import { bookedLine, booking, type Booked, type KnownTerms } from "./terms.ts";

/** What a batch adds to the chain. */
export interface Chained {
  readonly n: number;
  readonly head: Buffer;
  readonly rows: readonly Booked[];
  readonly notes: readonly (readonly [
    kind: "key" | "account",
    id: string,
    text: string,
    salt: string,
  ])[];
}

/** The batch's link in this node's chain; undefined: it writes nothing that is kept there. */
export function chained(
  of: Known,
  me: { readonly n: number; readonly head: Buffer },
  terms: KnownTerms,
): Chained | undefined {
  terms.begin();
  const rows = of.rows.map((row) => terms.book(row, of.began(row)));
  const notes = [
    ...[...of.keys.values()].map((key) => ["key", key.digest, toJson(key), newSalt()] as const),
    ...[...of.accounts.values()].map(
      (record) => ["account", record.id, toJson(record), newSalt()] as const,
    ),
  ];
  if (rows.length === 0 && notes.length === 0) return undefined;
  const lines = [
    ...rows.map(bookedLine),
    ...notes.map(([kind, id, text, salt]) => noteLine(kind, id, text, salt)),
  ];
  return { n: me.n + 1, head: hashOf(me.head, lines), rows, notes };
}

/** Everything in one write. */
export function write(
  of: Known,
  changed: readonly Meter[],
  chain: Chained | undefined,
  epoch: number,
  {
    ask,
    schema: s,
    terms,
  }: { readonly ask: Ask; readonly schema: string; readonly terms: KnownTerms },
): Promise<readonly Row[]>[] {
  const asked: Promise<readonly Row[]>[] = [];
  const say: Say = (text, values) => void asked.push(ask({ text, values }));
  if (chain) {
    say(
      `UPDATE ${s}.node SET n = $2, head = $3, alive = clock_timestamp() WHERE epoch = $1 AND state = 'live'`,
      [epoch, chain.n, chain.head],
    );
    say(
      `INSERT INTO ${s}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, $4)`,
      [epoch, chain.n, chain.head, chain.rows.length],
    );
    if (chain.notes.length > 0) writeNotes(of, chain, epoch, s, say);
  }
  if (chain && chain.rows.length > 0) {
    asked.push(...booking(s, epoch, chain.n, chain.rows, terms).map(ask));
    writeOpen(of, epoch, s, say);
  }
  for (const [attempt, { usage, costNano }] of of.heard)
    say(`UPDATE ${s}.open SET usage = $2, cost = $3::text::bigint WHERE attempt = $1`, [
      attempt,
      JSON.stringify(usage),
      costNano === null ? null : String(costNano),
    ]);
  if (changed.length > 0) writeMeters(changed, s, say);
  for (const [hash, price] of [...of.prices].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    say(`INSERT INTO ${s}.price VALUES ($1, $2) ON CONFLICT DO NOTHING`, [hash, toJson(price)]);
  return asked;
}

type Say = (text: string, values: readonly (string | number | Buffer | null)[]) => void;

function writeOpen({ rows }: Known, epoch: number, s: string, say: Say): void {
  const settled = new Set(rows.filter(({ kind }) => kind === "settle").map((row) => row.attempt));
  const begun = rows.filter(({ kind, attempt }) => kind === "reserve" && !settled.has(attempt));
  if (settled.size > 0)
    say(`DELETE FROM ${s}.open WHERE attempt = ANY ($1::text[])`, [texts([...settled])]);
  if (begun.length > 0)
    say(
      `INSERT INTO ${s}.open (attempt, node, began) SELECT a, $1::int, b FROM unnest($2::text[], $3::bigint[]) AS o(a, b)`,
      [
        epoch,
        texts(begun.map((row) => row.attempt)),
        numbers(begun.map((row) => Math.floor(row.at))),
      ],
    );
}

function writeNotes(of: Known, { n, notes }: Chained, epoch: number, s: string, say: Say): void {
  say(
    `INSERT INTO ${s}.note SELECT $1::int, $2::bigint, ord - 1, kind, id, floor(extract(epoch FROM clock_timestamp()) * 1000), text, salt
     FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS o(kind, id, text, salt, ord)`,
    [epoch, n, ...([0, 1, 2, 3] as const).map((i) => texts(notes.map((note) => note[i])))],
  );
  // One that is new is added, so that of two gateways that make it at once one reads first what the other has written.
  for (const [kind, id, text] of notes)
    if (of.has(kind, id))
      say(`UPDATE ${s}.${kind} SET record = $2 WHERE ${kind === "key" ? "digest" : "id"} = $1`, [
        id,
        text,
      ]);
    else if (kind === "key")
      say(`INSERT INTO ${s}.key VALUES ($1, $2, $3)`, [id, keyCursor(fromJson(text)), text]);
    else say(`INSERT INTO ${s}.account VALUES ($1, $2)`, [id, text]);
  for (const kind of new Set(notes.map(([kind]) => kind)))
    say(`UPDATE ${s}.fleet SET ${kind}s = ${kind}s + 1, changed = clock_timestamp()`, []);
}

function writeMeters(changed: readonly Meter[], s: string, say: Say): void {
  const of = (pick: (meter: Meter) => bigint | number) => numbers(changed.map(pick));
  say(
    `UPDATE ${s}.meter m SET level = x.level, held = x.held, at = x.at, max = x.max, peak = x.peak
     FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::bigint[], $5::numeric[], $6::numeric[])
       AS x(id, level, held, at, max, peak) WHERE m.id = x.id`,
    [
      texts(changed.map(({ id }) => id)),
      of(({ level }) => level),
      of(({ held }) => held),
      of(({ at }) => Math.floor(at)),
      of(({ max }) => max),
      of(({ peak }) => peak),
    ],
  );
}
