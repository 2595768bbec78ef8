// Requests that are over, the last so many of them: what an operator asks about a minute later. A ring, so that it never grows,
// and its readers are no part of it: one that is slow is overtaken, and told by how much.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { RequestRecord, RejectedRequest } from "../../plugin/observer.ts";
import { isWithinAccount } from "./series-selection.ts";

/** What reached a frontend, and what was turned away before one saw it. */
export type FinishedRequest = RequestRecord | RejectedRequest;

/** One of them, with its place in the order in which they came. */
export interface RingEntry {
  readonly seq: number;
  readonly request: FinishedRequest;
}

export interface RingPage {
  readonly items: readonly RingEntry[];
  /** Read on from here. */
  readonly next: number;
  /** So many that the reader had not read were gone when it came. */
  readonly missedCount: number;
}

/** What a reader may know of the ring. Its places and counts are of the requests that the reader may see. */
export type RingView = Pick<RequestRing, "count" | "size" | "since" | "read">;

export const isRoutedRequest = (over: FinishedRequest): over is RequestRecord => "frontend" in over;

/** Of what a client wrote, the beginning. */
const MAX_TEXT_CHARS = 256;

export class RequestRing {
  readonly #since: number;
  #slots: (FinishedRequest | undefined)[];
  /** How many ever came: the next one's place in the order. */
  #count = 0;
  /** The place of the oldest that is still here. */
  #oldest = 0;
  #added = Promise.withResolvers<void>();
  /** By the path of the account. */
  readonly #accounts = new Map<string, AccountCounts>();

  /** `since`: before that it saw nothing. */
  constructor(most: number, since: number = wallClock()) {
    this.#slots = Array.from({ length: most });
    this.#since = since;
  }

  /** How many it may keep. */
  get capacity(): number {
    return this.#slots.length;
  }
  get count(): number {
    return this.#count;
  }
  get size(): number {
    return this.#count - this.#oldest;
  }

  /** From when on every request is in it, in Unix milliseconds. */
  get since(): number {
    return this.#oldest === 0 ? this.#since : (this.#at(this.#oldest)?.at ?? wallClock());
  }

  /** From now on so many, the newest. */
  setCapacity(most: number): void {
    if (most === this.#slots.length) return;
    const first = Math.max(this.#oldest, this.#count - most);
    const slots: (FinishedRequest | undefined)[] = Array.from({ length: most });
    for (let seq = this.#oldest; seq < first; seq++) this.#lost(this.#at(seq));
    for (let seq = first; seq < this.#count; seq++) slots[seq % most] = this.#at(seq);
    this.#slots = slots;
    this.#oldest = first;
  }

  add(batch: readonly FinishedRequest[]): void {
    const most = this.#slots.length;
    if (most === 0) return;
    for (const over of batch) {
      const at = this.#count++ % most;
      this.#lost(this.#slots[at]);
      this.#slots[at] = toStored(over);
      const account = accountOf(over);
      if (account !== undefined) this.#countsOf(account).came++;
    }
    this.#oldest = Math.max(this.#oldest, this.#count - most);
    this.#added.resolve();
    this.#added = Promise.withResolvers();
  }

  /** A person is taken out of the ledger, by a label or a key, and so out of here: clients' and operators' words of requests go. */
  redactTexts(): void {
    for (let seq = this.#oldest; seq < this.#count; seq++) {
      const over = this.#at(seq)!;
      if (isRoutedRequest(over))
        this.#slots[seq % this.#slots.length] = { ...over, labels: {}, clientRequestId: undefined };
    }
  }

  /** The newest first. */
  find(matches: (over: FinishedRequest) => boolean, most: number): FinishedRequest[] {
    const found: FinishedRequest[] = [];
    for (let seq = this.#count - 1; seq >= this.#oldest && found.length < most; seq--)
      if (matches(this.#at(seq)!)) found.push(this.#at(seq)!);
    return found;
  }

  /** From `after` on, in the order in which they came; `undefined`: from the oldest that is here. */
  read(
    after: number | undefined,
    matches: (over: FinishedRequest) => boolean,
    most: number,
  ): RingPage {
    const rows = { first: this.#oldest, count: this.#count, at: (seq: number) => this.#at(seq)! };
    return pageOf(rows, after, matches, most);
  }

  /**
   * The requests of an account and of those below it, with places and counts that other requests do not change. `undefined`: all requests.
   */
  within(account: string | undefined): RingView {
    if (account === undefined) return this;
    const its = [...this.#accounts].filter(([path]) => isWithinAccount(path, account));
    const counts = its.map(([, counted]) => counted);
    const count = counts.reduce((sum, { came }) => sum + came, 0);
    const first = counts.reduce((sum, { gone }) => sum + gone, 0);
    const goneAt = Math.max(...counts.map((counted) => counted.goneAt));
    const own = () => {
      const rows: FinishedRequest[] = [];
      for (let seq = this.#oldest; seq < this.#count; seq++)
        if (isWithinAccount(accountOf(this.#at(seq)!), account)) rows.push(this.#at(seq)!);
      return rows;
    };
    return {
      count,
      size: count - first,
      since: first === 0 ? this.#since : goneAt + 1,
      read(after, matches, most) {
        const rows = own();
        return pageOf({ first, count, at: (seq) => rows[seq - first]! }, after, matches, most);
      },
    };
  }

  /** Resolves when something has come. */
  whenAdded(): Promise<void> {
    return this.#added.promise;
  }

  /** It makes room for a newer one. */
  #lost(over: FinishedRequest | undefined): void {
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

  #at(seq: number): FinishedRequest | undefined {
    return this.#slots[seq % this.#slots.length];
  }
}

/** Requests of one account: how many ever came, how many of them are gone, and when the last of those was over, in Unix milliseconds. */
interface AccountCounts {
  came: number;
  gone: number;
  goneAt: number;
}

const accountOf = (over: FinishedRequest): string | undefined =>
  isRoutedRequest(over) ? over.account : undefined;

function pageOf(
  rows: {
    readonly first: number;
    readonly count: number;
    readonly at: (seq: number) => FinishedRequest;
  },
  after: number | undefined,
  fits: (over: FinishedRequest) => boolean,
  most: number,
): RingPage {
  const { first, count } = rows;
  // A place that is still to come is one of an earlier process.
  const asked = after === undefined || after > count ? first : after;
  const from = Math.max(asked, first);
  const items: RingEntry[] = [];
  let seq = from;
  for (; seq < count && items.length < most; seq++) {
    const over = rows.at(seq);
    if (fits(over)) items.push({ seq, request: over });
  }
  return { items, next: seq, missedCount: from - asked };
}

/** As it is kept: a label may be a person, a client's own tracing writes what it likes, and a client may call its model by a whole book. */
function toStored(over: FinishedRequest): FinishedRequest {
  if (!isRoutedRequest(over)) return over;
  const isPrivate = over.privacy !== "off" && Object.keys(over.labels).length > 0;
  const isTraced = over.trace.state !== undefined;
  if (!isPrivate && !isTraced && over.model.length <= MAX_TEXT_CHARS) return over;
  return {
    ...over,
    ...(isPrivate && { labels: {} }),
    ...(isTraced && { trace: { ...over.trace, state: undefined } }),
    model: truncate(over.model),
  };
}

/** A slice of a text keeps the whole text alive; this is one of its own. */
const truncate = (text: string): string =>
  text.length <= MAX_TEXT_CHARS ? text : Buffer.from(text.slice(0, MAX_TEXT_CHARS)).toString();
