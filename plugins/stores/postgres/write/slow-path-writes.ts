// The writes of the slow path after the rules have decided. All statements are sent together.
import {
  encodeLineAmounts,
  fromJson,
  keyCursor,
  toJson,
  type Meter,
  hashBatch,
  noteChainLine,
  createSalt,
} from "tollgate/store";
import type { BatchJournal } from "./batch-journal.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import {
  plannedRowLine,
  insertRowsQueries,
  type PlannedRow,
  type TermsCache,
} from "../rows/call-terms.ts";

/** The additions of a batch to the chain. */
export interface ChainedBatch {
  readonly n: number;
  readonly head: Buffer;
  readonly rows: readonly PlannedRow[];
  readonly notes: readonly (readonly [
    kind: "key" | "account",
    id: string,
    text: string,
    salt: string,
  ])[];
}

/**
 * Returns the batch's link in this node's chain. Returns undefined if the batch writes nothing to
 * the chain.
 */
export function chainBatch(
  of: BatchJournal,
  me: { readonly n: number; readonly head: Buffer },
  terms: TermsCache,
): ChainedBatch | undefined {
  terms.beginBatch();
  const rows = of.rows.map((row) => terms.planRow(row, of.callStart(row)));
  const notes = [
    ...[...of.keys.values()].map((key) => ["key", key.digest, toJson(key), createSalt()] as const),
    ...[...of.accounts.values()].map(
      (record) => ["account", record.id, toJson(record), createSalt()] as const,
    ),
  ];
  if (rows.length === 0 && notes.length === 0) return undefined;
  const lines = [
    ...rows.map(plannedRowLine),
    ...notes.map(([kind, id, text, salt]) => noteChainLine(kind, id, text, salt)),
  ];
  return { n: me.n + 1, head: hashBatch(me.head, lines), rows, notes };
}

/** Sends all statements of a batch in one write. */
export function writeBatch(
  of: BatchJournal,
  changed: readonly Meter[],
  chain: ChainedBatch | undefined,
  epoch: number,
  {
    sql,
    schema,
    terms,
  }: { readonly sql: RunSql; readonly schema: string; readonly terms: TermsCache },
): Promise<readonly Row[]>[] {
  const pending: Promise<readonly Row[]>[] = [];
  const say: AddStatement = (text, values) => void pending.push(sql({ text, values }));
  if (chain) {
    say(
      `UPDATE ${schema}.node SET n = $2, head = $3, last_heartbeat = clock_timestamp() WHERE epoch = $1 AND state = 'live'`,
      [epoch, chain.n, chain.head],
    );
    say(
      `INSERT INTO ${schema}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, $4)`,
      [epoch, chain.n, chain.head, chain.rows.length],
    );
    if (chain.notes.length > 0) writeNotes(of, chain, epoch, schema, say);
  }
  if (chain && chain.rows.length > 0) {
    pending.push(...insertRowsQueries(schema, epoch, chain.n, chain.rows, terms).map(sql));
    writeOpenCalls(of, epoch, schema, say);
  }
  for (const [attempt, { usage, costNano }] of of.progress)
    say(`UPDATE ${schema}.open_call SET usage = $2, cost = $3::text::bigint WHERE attempt = $1`, [
      attempt,
      JSON.stringify(usage),
      costNano === null ? null : String(costNano),
    ]);
  if (changed.length > 0) writeMeters(changed, schema, say);
  for (const [hash, price] of [...of.prices].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    say(`INSERT INTO ${schema}.price VALUES ($1, $2) ON CONFLICT DO NOTHING`, [
      hash,
      toJson(price),
    ]);
  return pending;
}

type AddStatement = (text: string, values: readonly (string | number | Buffer | null)[]) => void;

function writeOpenCalls(
  { rows, lineAmounts }: BatchJournal,
  epoch: number,
  schema: string,
  say: AddStatement,
): void {
  const settled = new Set(rows.filter(({ kind }) => kind === "settle").map((row) => row.attempt));
  const begun = rows.filter(({ kind, attempt }) => kind === "reserve" && !settled.has(attempt));
  if (settled.size > 0)
    say(`DELETE FROM ${schema}.open_call WHERE attempt = ANY ($1::text[])`, [
      textArray([...settled]),
    ]);
  if (begun.length > 0)
    say(
      `INSERT INTO ${schema}.open_call (attempt, node, started_at, job) SELECT a, $1::int, b, c FROM unnest($2::text[], $3::bigint[], $4::text[]) AS o(a, b, c)`,
      [
        epoch,
        textArray(begun.map((row) => row.attempt)),
        numberArray(begun.map((row) => Math.floor(row.at))),
        textArray(begun.map((row) => row.job ?? null)),
      ],
    );
  for (const [attempt, amounts] of lineAmounts)
    say(`UPDATE ${schema}.open_call SET line_amounts = $2 WHERE attempt = $1`, [
      attempt,
      encodeLineAmounts(amounts),
    ]);
}

function writeNotes(
  of: BatchJournal,
  { n, notes }: ChainedBatch,
  epoch: number,
  schema: string,
  say: AddStatement,
): void {
  say(
    `INSERT INTO ${schema}.note SELECT $1::int, $2::bigint, ord - 1, kind, id, floor(extract(epoch FROM clock_timestamp()) * 1000), text, salt
     FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS o(kind, id, text, salt, ord)`,
    [epoch, n, ...([0, 1, 2, 3] as const).map((i) => textArray(notes.map((note) => note[i])))],
  );
  // A new record is inserted without ON CONFLICT. If two gateways create it at the same time, the
  // second statement fails, and that gateway first reads the other's record.
  for (const [kind, id, text] of notes)
    if (of.has(kind, id))
      say(
        `UPDATE ${schema}.${kind} SET record = $2 WHERE ${kind === "key" ? "digest" : "id"} = $1`,
        [id, text],
      );
    else if (kind === "key")
      say(`INSERT INTO ${schema}.key VALUES ($1, $2, $3)`, [id, keyCursor(fromJson(text)), text]);
    else say(`INSERT INTO ${schema}.account VALUES ($1, $2)`, [id, text]);
  for (const kind of new Set(notes.map(([kind]) => kind)))
    say(
      `UPDATE ${schema}.change_counter SET ${kind}s = ${kind}s + 1, changed = clock_timestamp()`,
      [],
    );
}

function writeMeters(changed: readonly Meter[], schema: string, say: AddStatement): void {
  const of = (pick: (meter: Meter) => bigint | number) => numberArray(changed.map(pick));
  say(
    `UPDATE ${schema}.meter m SET level = x.level, reserved = x.reserved, at = x.at, max = x.max, peak = x.peak, notified_level = x.notified_level, changes = x.changes
     FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::text[])
       AS x(id, level, reserved, at, max, peak, notified_level, changes) WHERE m.id = x.id`,
    [
      textArray(changed.map(({ id }) => id)),
      of(({ level }) => level),
      of(({ reserved }) => reserved),
      of(({ at }) => Math.floor(at)),
      of(({ max }) => max),
      of(({ peak }) => peak),
      of(({ notifiedLevel }) => notifiedLevel),
      textArray(changed.map(({ changes }) => (changes.length > 0 ? changes.join(" ") : null))),
    ],
  );
}
