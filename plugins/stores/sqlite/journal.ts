// The book's journal as statements on an open database. All of them run inside the writer's transaction, and most of them
// once a commit: what its rows say is put together as text and stored in one piece.
import type { DatabaseSync } from "node:sqlite";
import type { KeyRecord, Price, StoreCommand } from "tollgate/plugin";
import {
  type CallRows,
  type Journal,
  type LedgerRow,
  type Meter,
  nth,
  type OpenCall,
  type OpenCalls,
  type Progress,
  type Taken,
  toJson,
} from "tollgate/store";
import { headOf, type Head } from "./chain.ts";
import { createLow, type Low } from "./low.ts";
import { createMention, type Mention } from "./mention.ts";
import { leftOpen } from "./left.ts";
import { createRecords, type KeptRecords } from "./records.ts";
import { statementsOf } from "./statements.ts";
import { createShelf, link, rowsOf, type Shelf, type Stored } from "./stored.ts";
import { textOf } from "./terms.ts";
import { noteText, type Note } from "./note.ts";
import { createWords, type Words } from "./words.ts";
import { newSaid, type Said } from "./said.ts";
import { amount, newTerms, type ReserveLine, type SettleLine } from "./wire.ts";

/** An open call: what its settle will repeat. */
export interface StoredCall extends OpenCall {
  readonly terms: Said;
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

/** How many entries a next owner reads at most for calls that were open. Those that are open for longer are listed. */
const SPAN = 16_384;

type Told<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

export class SqliteJournal implements Journal<ReserveLine, SettleLine, StoredCall> {
  /** Attempts are looked up one by one. Else the index tells, when the batch is closed, that one was there before. */
  careful = false;
  readonly #db: DatabaseSync;
  #instance: string;
  readonly #say: ReturnType<typeof statementsOf>;
  readonly #shelf: Shelf;
  readonly #mention: Mention;
  readonly #words: Words;
  readonly #low: Low = createLow();
  readonly accounts: KeptRecords;
  #head: Head;
  #sealed: Head;
  // Of this batch.
  #rows: string[] = [];
  #terms: Said[] = [];
  #token = {};
  #since = Infinity;
  #till = -Infinity;
  #begun: StoredCall[] = [];
  #ended: StoredCall[] = [];
  #listed: StoredCall[] = [];
  #closed: number[] = [];

  constructor(db: DatabaseSync, instance: string) {
    this.#db = db;
    this.#instance = instance;
    this.#say = statementsOf(db);
    this.#shelf = createShelf(db);
    this.#mention = createMention(db);
    this.#words = createWords(db);
    this.#head = this.#sealed = headOf(db);
    this.accounts = createRecords(db, this.#words);
  }

  reserve(c: ReserveLine, taken: readonly Taken[]): StoredCall | undefined {
    if (this.careful && this.knows(c.attempt)) return undefined;
    const first = this.#head.seq + 1;
    const { attempt, who, hold } = c;
    const terms = this.#words.said(c.terms);
    const seq = this.#next();
    const call: StoredCall = { attempt, taken, terms, who, hold, seq, first, listed: false };
    const takes =
      taken.length === 0 ? "null" : JSON.stringify(taken.map(([id, n]) => [id, String(n)]));
    this.#write(c.at, `["r",${c.at},${who},${this.#place(terms)},${hold},${takes}]`);
    this.#begun.push(call);
    this.#low.commit(first);
    this.#low.opened(first);
    return call;
  }

  settle(call: StoredCall, c: SettleLine): void {
    const place = this.#place(call.terms);
    this.#write(c.at, `["s",${c.at},${call.who},${place},${call.hold},${c.text}]`);
    this.#ended.push(call);
    if (call.listed) this.#say.unlist.run(call.attempt);
    else this.#close(call);
  }

  /** A correction that another store has written: its labels are text. */
  corrected = (row: LedgerRow): boolean =>
    this.adjust(row, this.#words.said(newTerms(textOf(row))));

  adjust(row: LedgerRow, terms = newSaid(textOf(row))): boolean {
    const { attempt, request, n, usage, costNano, reason, actor } = row;
    if (this.#say.adjustment.run(attempt, nth(row), this.#next()).changes === 0) return false;
    const at = Math.floor(row.at);
    const said = [attempt, request, n, this.#place(terms)];
    this.#write(at, JSON.stringify(["a", at, ...said, usage, amount(costNano), reason, actor]));
    return true;
  }

  knows(attempt: string): boolean {
    return (
      this.#begun.some((call) => call.attempt === attempt) ||
      this.#say.known.get(attempt) !== undefined
    );
  }

  past(attempt: string): CallRows | undefined {
    const has = (call: StoredCall): boolean => call.attempt === attempt;
    const mine = this.#begun.some(has) || this.#ended.some(has) ? this.#pending() : [];
    const there = this.#shelf.about(attempt);
    const of = (kind: LedgerRow["kind"], seq: number | undefined): LedgerRow | undefined =>
      seq === undefined
        ? mine.find((row) => row.attempt === attempt && row.kind === kind)
        : this.#shelf.row(seq);
    const reserve = of("reserve", there?.reserve);
    return reserve && { reserve, settle: of("settle", there?.settle) };
  }

  progress(call: StoredCall, { usage, costNano = null }: Told<"progress">): void {
    this.#put(call, { usage, costNano });
  }

  key = (record: KeyRecord): void => this.accounts.key(record);

  keyOf = (digest: string): KeyRecord | undefined => this.accounts.keyOf(digest);

  price(hash: string, row: Price): void {
    this.#say.price.run(hash, toJson(row));
  }

  alive(at: number): void {
    this.#say.alive.run(Math.floor(at));
  }

  /** The next commits are of this instance: a ledger that is moved here keeps the names. */
  writes = (instance: string): void => void (this.#instance = instance);

  /** What the ledger says of itself, as a row of a commit of its own. */
  note(at: number, note: Note): number {
    const seq = this.#next();
    this.#write(Math.floor(at), noteText(Math.floor(at), note));
    return seq;
  }

  /** Text was taken out of the file: nothing that was said of it before is said again. */
  forget = (): void => this.#words.forget();

  /** Closes the batch: its rows, its meters, and its link in the chain of hashes. */
  seal(changed: Iterable<Meter>, dropped: readonly string[], open: OpenCalls<StoredCall>): void {
    const say = this.#say;
    for (const id of dropped) say.drop.run(id);
    for (const { id, level, at, max, told } of changed)
      say.meter.run(id, String(level), Math.floor(at), String(max), String(told));
    this.#sealed = this.#head;
    if (this.#rows.length === 0) return;
    const { seq, segment, hash } = this.#head;
    const [first, last] = [seq + 1, seq + this.#rows.length];
    this.#listOld(last, open);
    const stored = this.#stored();
    this.#sealed = { segment: segment + 1, seq: last, hash: link(hash, stored) };
    say.batch.run(first, this.#instance, stored.terms, stored.rows);
    const low = this.#low.at(last + 1);
    say.segment.run(segment + 1, first, last, this.#sealed.hash, this.#since, this.#till, low);
    this.#mention.add(this.#terms, first);
    this.#words.add(this.#terms, first);
    if (this.#begun.length > 0)
      say.begin.run(first, JSON.stringify(this.#begun.map(({ attempt }) => attempt)));
    if (this.#ended.length > 0)
      say.end.run(first, `[${this.#ended.map((call) => call.seq).join()}]`);
  }

  undo(): void {
    this.#mention.undo();
    this.#words.undo();
    for (const call of this.#listed) call.listed = false;
    for (const call of this.#begun) this.#low.closed(call.first);
    for (const first of this.#closed) this.#low.opened(first);
    this.#forget();
  }

  done(): void {
    this.#head = this.#sealed;
    this.#mention.done();
    this.#words.done();
    this.#low.done();
    this.#forget();
  }

  /** Calls that an owner before this one has left open. */
  *open(): Iterable<Found> {
    for (const { row, seq, first, listed, heard } of leftOpen(this.#db)) {
      const { attempt, taken, request, n, holdNano } = row;
      const call: StoredCall = {
        attempt,
        taken,
        terms: newSaid(textOf(row)),
        who: `${JSON.stringify(attempt)},${JSON.stringify(request)},${n}`,
        hold: holdNano === null ? "null" : `"${holdNano}"`,
        seq,
        first,
        listed,
      };
      this.#low.commit(first);
      if (!listed) this.#low.opened(first);
      yield { call, row, heard };
    }
  }

  #next(): number {
    return this.#head.seq + 1 + this.#rows.length;
  }

  #place(of: Said): number {
    if (of.listed !== this.#token) {
      of.listed = this.#token;
      of.place = this.#terms.push(of) - 1;
    }
    return of.place;
  }

  #write(at: number, row: string): void {
    this.#rows.push(row);
    if (at < this.#since) this.#since = at;
    if (at > this.#till) this.#till = at;
  }

  #put(call: StoredCall, heard: Progress): void {
    this.#say.list.run(call.attempt, call.seq, JSON.stringify(heard.usage), heard.costNano);
    if (call.listed) return;
    call.listed = true;
    this.#listed.push(call);
    this.#close(call);
  }

  #close({ first }: StoredCall): void {
    this.#low.closed(first);
    this.#closed.push(first);
  }

  /** So that a next owner need not read far back. */
  #listOld(last: number, open: OpenCalls<StoredCall>): void {
    if (last - this.#low.at(last + 1) <= SPAN) return;
    for (const call of open.values())
      if (!call.listed && call.seq < last - SPAN / 2)
        this.#put(call, { usage: {}, costNano: null });
  }

  /** This batch as the file will hold it. */
  #stored(): Stored {
    return {
      first: this.#head.seq + 1,
      instance: this.#instance,
      terms: `[${this.#terms.map(({ text }) => text).join()}]`,
      rows: `[${this.#rows.join()}]`,
    };
  }

  /** The rows of this batch, which the tables do not have yet. */
  #pending(): LedgerRow[] {
    return rowsOf(this.#stored());
  }

  #forget(): void {
    this.#rows = [];
    this.#terms = [];
    this.#token = {};
    this.#since = Infinity;
    this.#till = -Infinity;
    this.#begun = [];
    this.#ended = [];
    this.#listed = [];
    this.#closed = [];
  }
}
