// The book's journal as statements on an open database. All of them run inside the writer's transaction, and most of them
// once a commit: what its rows say is put together as text and stored in one piece.
import type { DatabaseSync } from "node:sqlite";
import {
  type CallRows,
  type Journal,
  keyCursor,
  type LedgerRow,
  type Meter,
  nth,
  type OpenCall,
  type OpenCalls,
  type Progress,
  toJson,
} from "tollgate/store";
import { headOf } from "./chain.ts";
import { createKeyring } from "./keyring.ts";
import { createLow } from "./low.ts";
import { createMention } from "./mention.ts";
import { leftOpen } from "./left.ts";
import { createShelf, link, rowsOf, type Stored } from "./stored.ts";
import { textOf } from "./terms.ts";
import { amount, newTerms, type ReserveLine, type SettleLine, type Terms } from "./wire.ts";

/** An open call: what its settle will repeat. */
export interface StoredCall extends OpenCall {
  readonly terms: Terms;
  readonly who: string;
  readonly hold: string;
  readonly seq: number;
  /** Its commit's first entry. */
  readonly first: number;
  /** Whether `open` has it. */
  listed: boolean;
}

/** A call that was found open. */
export interface Found {
  call: StoredCall;
  row: LedgerRow;
  heard: Progress | undefined;
}

export interface SqliteJournal extends Journal<ReserveLine, SettleLine, StoredCall> {
  /** Attempts are looked up one by one. Else the index tells, when the batch is closed, that one was there before. */
  careful: boolean;
  /** Closes the batch: its rows, its meters, and its link in the chain of hashes. */
  seal(changed: Iterable<Meter>, dropped: readonly string[], open: OpenCalls<StoredCall>): void;
  undo(): void;
  done(): void;
  open(): Iterable<Found>;
}

/** How many entries a next owner reads at most for calls that were open. Those that are open for longer are listed. */
const SPAN = 16_384;

export function createJournal(db: DatabaseSync, instance: string): SqliteJournal {
  const shelf = createShelf(db);
  const batch = db.prepare("INSERT INTO batch (first, instance, terms, rows) VALUES (?, ?, ?, ?)");
  const segment = db.prepare(
    "INSERT INTO segment (id, first, last, hash, since, till, low) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  // FAIL: what fails is taken back with its whole batch, and needs no journal of its own.
  const begin = db.prepare(
    "INSERT OR FAIL INTO call (attempt, first) SELECT value, ? FROM json_each(?)",
  );
  const end = db.prepare(
    "INSERT OR FAIL INTO done (reserve, first) SELECT value, ? FROM json_each(?)",
  );
  const mention = createMention(db);
  const known = db.prepare("SELECT 1 FROM call WHERE attempt = ?");
  const adjustment = db.prepare(
    "INSERT INTO adjustment (attempt, nth, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const list = db.prepare(
    "INSERT INTO open (attempt, seq, usage, cost) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (attempt) DO UPDATE SET usage = excluded.usage, cost = excluded.cost",
  );
  const unlist = db.prepare("DELETE FROM open WHERE attempt = ?");
  const meter = db.prepare(
    "INSERT INTO meter (id, level, at, max) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (id) DO UPDATE SET level = excluded.level, at = excluded.at, max = excluded.max",
  );
  const drop = db.prepare("DELETE FROM meter WHERE id = ?");
  const key = db.prepare("INSERT OR REPLACE INTO key (digest, place, record) VALUES (?, ?, ?)");
  const keyring = createKeyring(db);
  const price = db.prepare("INSERT INTO price (hash, price) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const alive = db.prepare(
    "UPDATE instance SET alive = ? WHERE epoch = (SELECT max(epoch) FROM instance)",
  );

  const low = createLow();
  let head = headOf(db);
  let sealed = head;
  let careful = false;
  // Of this batch.
  let rows: string[] = [];
  let terms: Terms[] = [];
  let token = {};
  let [since, till] = [Infinity, -Infinity];
  let begun: StoredCall[] = [];
  let ended: StoredCall[] = [];
  let listed: StoredCall[] = [];
  let closed: number[] = [];

  const next = (): number => head.seq + 1 + rows.length;

  function place(of: Terms): number {
    if (of.listed !== token) {
      of.listed = token;
      of.place = terms.push(of) - 1;
    }
    return of.place;
  }
  function write(at: number, row: string): void {
    rows.push(row);
    if (at < since) since = at;
    if (at > till) till = at;
  }
  function put(call: StoredCall, heard: Progress): void {
    list.run(call.attempt, call.seq, JSON.stringify(heard.usage), heard.costNano);
    if (call.listed) return;
    call.listed = true;
    listed.push(call);
    close(call);
  }
  function close({ first }: StoredCall): void {
    low.closed(first);
    closed.push(first);
  }
  function forget(): void {
    [rows, terms, token] = [[], [], {}];
    [since, till] = [Infinity, -Infinity];
    [begun, ended, listed, closed] = [[], [], [], []];
  }

  /** The rows of this batch, which the tables do not have yet. */
  const pending = (): LedgerRow[] =>
    rowsOf({
      first: head.seq + 1,
      instance,
      terms: `[${terms.map(({ text }) => text).join()}]`,
      rows: `[${rows.join()}]`,
    });
  const knows = (attempt: string): boolean =>
    begun.some((call) => call.attempt === attempt) || known.get(attempt) !== undefined;

  return {
    set careful(is: boolean) {
      careful = is;
    },
    reserve(c, taken) {
      if (careful && knows(c.attempt)) return undefined;
      const first = head.seq + 1;
      const { attempt, terms, who, hold } = c;
      const call: StoredCall = {
        attempt,
        taken,
        terms,
        who,
        hold,
        seq: next(),
        first,
        listed: false,
      };
      const takes =
        taken.length === 0 ? "null" : JSON.stringify(taken.map(([id, n]) => [id, String(n)]));
      write(c.at, `["r",${c.at},${who},${place(terms)},${hold},${takes}]`);
      begun.push(call);
      low.commit(first);
      low.opened(first);
      return call;
    },
    settle(call, c) {
      write(c.at, `["s",${c.at},${call.who},${place(call.terms)},${call.hold},${c.text}]`);
      ended.push(call);
      if (call.listed) unlist.run(call.attempt);
      else close(call);
    },
    adjust(row) {
      if (adjustment.run(row.attempt, nth(row), next()).changes === 0) return false;
      const at = Math.floor(row.at);
      const { attempt, request, n, usage, costNano, reason, actor } = row;
      const said = [attempt, request, n, place(newTerms(textOf(row)))];
      write(at, JSON.stringify(["a", at, ...said, usage, amount(costNano), reason, actor]));
      return true;
    },
    knows,
    past(attempt): CallRows | undefined {
      const has = (call: StoredCall): boolean => call.attempt === attempt;
      const mine = begun.some(has) || ended.some(has) ? pending() : [];
      const there = shelf.about(attempt);
      const of = (kind: LedgerRow["kind"], seq: number | undefined): LedgerRow | undefined =>
        seq === undefined
          ? mine.find((row) => row.attempt === attempt && row.kind === kind)
          : shelf.row(seq);
      const reserve = of("reserve", there?.reserve);
      return reserve && { reserve, settle: of("settle", there?.settle) };
    },
    progress: (call, { usage, costNano = null }) => put(call, { usage, costNano }),
    key(record) {
      const text = toJson(record);
      key.run(record.digest, keyCursor(record), text);
      keyring(record.digest, text);
    },
    price: (hash, row) => void price.run(hash, toJson(row)),
    alive: (at) => void alive.run(Math.floor(at)),
    seal(changed, dropped, open) {
      for (const id of dropped) drop.run(id);
      for (const m of changed) meter.run(m.id, String(m.level), Math.floor(m.at), String(m.max));
      sealed = head;
      if (rows.length === 0) return;
      const [first, last] = [head.seq + 1, head.seq + rows.length];
      if (last - low.at(last + 1) > SPAN)
        for (const call of open.values())
          if (!call.listed && call.seq < last - SPAN / 2) put(call, { usage: {}, costNano: null });
      const stored: Stored = {
        first,
        instance,
        terms: `[${terms.map(({ text }) => text).join()}]`,
        rows: `[${rows.join()}]`,
      };
      sealed = { segment: head.segment + 1, seq: last, hash: link(head.hash, stored) };
      batch.run(first, instance, stored.terms, stored.rows);
      segment.run(sealed.segment, first, last, sealed.hash, since, till, low.at(last + 1));
      mention.add(terms, first);
      if (begun.length > 0) begin.run(first, JSON.stringify(begun.map(({ attempt }) => attempt)));
      if (ended.length > 0) end.run(first, `[${ended.map(({ seq }) => seq).join()}]`);
    },
    undo() {
      mention.undo();
      for (const call of listed) call.listed = false;
      for (const call of begun) low.closed(call.first);
      for (const first of closed) low.opened(first);
      forget();
    },
    done() {
      head = sealed;
      mention.done();
      low.done();
      forget();
    },
    *open() {
      for (const { row, seq, first, listed, heard } of leftOpen(db)) {
        const { attempt, taken, request, n, holdNano } = row;
        const call: StoredCall = {
          attempt,
          taken,
          terms: newTerms(textOf(row)),
          who: `${JSON.stringify(attempt)},${JSON.stringify(request)},${n}`,
          hold: holdNano === null ? "null" : `"${holdNano}"`,
          seq,
          first,
          listed,
        };
        low.commit(first);
        if (!listed) low.opened(first);
        yield { call, row, heard };
      }
    },
  };
}
