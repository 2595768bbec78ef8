// Requests that are over, the last so many of them: what an operator asks about a minute later. A ring, so that it never grows,
// and its readers are no part of it: one that is slow is overtaken, and told by how much.
import { wallClock } from "../../lib/wall-clock.ts";
import type { RequestRecord, TurnedAway } from "../../plugin/observer.ts";
import { standsIn } from "./series-choice.ts";

/** What reached a frontend, and what was turned away before one saw it. */
export type Over = RequestRecord | TurnedAway;

/** One of them, with its place in the order in which they came. */
export interface Placed {
  readonly seq: number;
  readonly over: Over;
}

export interface RingPage {
  readonly items: readonly Placed[];
  /** Read on from here. */
  readonly next: number;
  /** So many that the reader had not read were gone when it came. */
  readonly missed: number;
}

/** What a reader may know of the ring. Its places and counts are of the requests that the reader may see. */
export type RingView = Pick<RequestRing, "count" | "size" | "since" | "read">;

export const reachedFrontend = (over: Over): over is RequestRecord => "frontend" in over;

/** Of what a client wrote, the beginning. */
const CHARACTERS = 256;

export class RequestRing {
  readonly #since: number;
  #slots: (Over | undefined)[];
  /** How many ever came: the next one's place in the order. */
  #count = 0;
  /** The place of the oldest that is still here. */
  #first = 0;
  #grown = Promise.withResolvers<void>();
  /** By the path of the account. */
  readonly #accounts = new Map<string, AccountCounts>();

  /** `since`: before that it saw nothing. */
  constructor(most: number, since: number = wallClock()) {
    this.#slots = Array.from({ length: most });
    this.#since = since;
  }

  /** How many it may keep. */
  get most(): number {
    return this.#slots.length;
  }
  get count(): number {
    return this.#count;
  }
  get size(): number {
    return this.#count - this.#first;
  }

  /** From when on every request is in it, in Unix milliseconds. */
  get since(): number {
    return this.#first === 0 ? this.#since : (this.#at(this.#first)?.at ?? wallClock());
  }

  /** From now on so many, the newest. */
  limit(most: number): void {
    if (most === this.#slots.length) return;
    const first = Math.max(this.#first, this.#count - most);
    const slots: (Over | undefined)[] = Array.from({ length: most });
    for (let seq = this.#first; seq < first; seq++) this.#lost(this.#at(seq));
    for (let seq = first; seq < this.#count; seq++) slots[seq % most] = this.#at(seq);
    this.#slots = slots;
    this.#first = first;
  }

  add(batch: readonly Over[]): void {
    const most = this.#slots.length;
    if (most === 0) return;
    for (const over of batch) {
      const at = this.#count++ % most;
      this.#lost(this.#slots[at]);
      this.#slots[at] = bounded(over);
      const account = accountOf(over);
      if (account !== undefined) this.#countsOf(account).came++;
    }
    this.#first = Math.max(this.#first, this.#count - most);
    this.#grown.resolve();
    this.#grown = Promise.withResolvers();
  }

  /** A person is taken out of the ledger, by a label or a key, and so out of here: clients' and operators' words of requests go. */
  forgetWords(): void {
    for (let seq = this.#first; seq < this.#count; seq++) {
      const over = this.#at(seq)!;
      if (reachedFrontend(over))
        this.#slots[seq % this.#slots.length] = { ...over, labels: {}, clientRequestId: undefined };
    }
  }

  /** The newest first. */
  find(fits: (over: Over) => boolean, most: number): Over[] {
    const found: Over[] = [];
    for (let seq = this.#count - 1; seq >= this.#first && found.length < most; seq--)
      if (fits(this.#at(seq)!)) found.push(this.#at(seq)!);
    return found;
  }

  /** From `after` on, in the order in which they came; `undefined`: from the oldest that is here. */
  read(after: number | undefined, fits: (over: Over) => boolean, most: number): RingPage {
    const rows = { first: this.#first, count: this.#count, at: (seq: number) => this.#at(seq)! };
    return pageOf(rows, after, fits, most);
  }

  /**
   * The requests of an account and of those below it, with places and counts that other requests do not change. `undefined`: all requests.
   */
  within(account: string | undefined): RingView {
    if (account === undefined) return this;
    const its = [...this.#accounts].filter(([path]) => standsIn(path, account));
    const counts = its.map(([, counted]) => counted);
    const count = counts.reduce((sum, { came }) => sum + came, 0);
    const first = counts.reduce((sum, { gone }) => sum + gone, 0);
    const goneAt = Math.max(...counts.map((counted) => counted.goneAt));
    const own = () => {
      const rows: Over[] = [];
      for (let seq = this.#first; seq < this.#count; seq++)
        if (standsIn(accountOf(this.#at(seq)!), account)) rows.push(this.#at(seq)!);
      return rows;
    };
    return {
      count,
      size: count - first,
      since: first === 0 ? this.#since : goneAt + 1,
      read(after, fits, most) {
        const rows = own();
        return pageOf({ first, count, at: (seq) => rows[seq - first]! }, after, fits, most);
      },
    };
  }

  /** Resolves when something has come. */
  grown(): Promise<void> {
    return this.#grown.promise;
  }

  /** It makes room for a newer one. */
  #lost(over: Over | undefined): void {
    const account = over && accountOf(over);
    if (account === undefined) return;
    const counts = this.#countsOf(account);
    counts.gone++;
    counts.goneAt = Math.max(counts.goneAt, over!.at);
  }

  #countsOf(account: string): AccountCounts {
    let counts = this.#accounts.get(account);
    if (!counts) this.#accounts.set(account, (counts = { came: 0, gone: 0, goneAt: -Infinity }));
    return counts;
  }

  #at(seq: number): Over | undefined {
    return this.#slots[seq % this.#slots.length];
  }
}

/** Requests of one account: how many ever came, how many of them are gone, and when the last of those was over, in Unix milliseconds. */
interface AccountCounts {
  came: number;
  gone: number;
  goneAt: number;
}

const accountOf = (over: Over): string | undefined =>
  reachedFrontend(over) ? over.account : undefined;

function pageOf(
  rows: {
    readonly first: number;
    readonly count: number;
    readonly at: (seq: number) => Over;
  },
  after: number | undefined,
  fits: (over: Over) => boolean,
  most: number,
): RingPage {
  const { first, count } = rows;
  // A place that is still to come is one of an earlier process.
  const asked = after === undefined || after > count ? first : after;
  const from = Math.max(asked, first);
  const items: Placed[] = [];
  let seq = from;
  for (; seq < count && items.length < most; seq++) {
    const over = rows.at(seq);
    if (fits(over)) items.push({ seq, over });
  }
  return { items, next: seq, missed: from - asked };
}

/** As it is kept: a label may be a person, a client's own tracing writes what it likes, and a client may call its model by a whole book. */
function bounded(over: Over): Over {
  if (!reachedFrontend(over)) return over;
  const isPrivate = over.privacy !== "off" && Object.keys(over.labels).length > 0;
  const isTraced = over.trace.state !== undefined;
  if (!isPrivate && !isTraced && over.model.length <= CHARACTERS) return over;
  return {
    ...over,
    ...(isPrivate && { labels: {} }),
    ...(isTraced && { trace: { ...over.trace, state: undefined } }),
    model: beginning(over.model),
  };
}

/** A slice of a text keeps the whole text alive; this is one of its own. */
const beginning = (text: string): string =>
  text.length <= CHARACTERS ? text : Buffer.from(text.slice(0, CHARACTERS)).toString();
