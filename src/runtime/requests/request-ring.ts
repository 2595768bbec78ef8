// Keeps the most recent finished requests for operators. It is a ring of fixed size that does not
// depend on its readers. A slow reader misses entries, and receives the number of missed entries.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { RequestRecord, RejectedRequest } from "../../plugin/observer.ts";
import { isWithinAccount } from "./series-selection.ts";

/** A request that reached a frontend, or one that was rejected before that. */
export type FinishedRequest = RequestRecord | RejectedRequest;

/** A finished request with its sequence number. */
export interface RingEntry {
  readonly seq: number;
  readonly request: FinishedRequest;
}

export interface RingPage {
  readonly items: readonly RingEntry[];
  /** Sequence number to continue from. */
  readonly next: number;
  /** Number of unread entries that were overwritten before this read. */
  readonly missedCount: number;
}

/**
 * The part of the ring that a reader may see. Sequence numbers and counts cover only the requests
 * that the reader may see.
 */
export type RingView = Pick<RequestRing, "count" | "size" | "since" | "read">;

export const isRoutedRequest = (over: FinishedRequest): over is RequestRecord => "frontend" in over;

/** Maximum length of a text that a client wrote, in characters. Longer texts are truncated. */
const MAX_TEXT_CHARS = 256;

export class RequestRing {
  readonly #since: number;
  #slots: (FinishedRequest | undefined)[];
  /** Number of requests ever added, and so the next sequence number. */
  #count = 0;
  /** Sequence number of the oldest entry that is still present. */
  #oldest = 0;
  #added = Promise.withResolvers<void>();
  /** Counts by account path. */
  readonly #accounts = new Map<string, AccountCounts>();

  /** @param since Start of the recording, in Unix milliseconds. */
  constructor(most: number, since: number = wallClock()) {
    this.#slots = Array.from({ length: most });
    this.#since = since;
  }

  /** Maximum number of entries. */
  get capacity(): number {
    return this.#slots.length;
  }
  get count(): number {
    return this.#count;
  }
  get size(): number {
    return this.#count - this.#oldest;
  }

  /** Time from which the ring is complete, in Unix milliseconds. */
  get since(): number {
    return this.#oldest === 0 ? this.#since : (this.#at(this.#oldest)?.at ?? wallClock());
  }

  /** Changes the capacity. The newest entries are kept. */
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

  /**
   * Removes texts that clients and operators wrote. Called when personal data is erased from the
   * ledger, by a label or a key.
   */
  redactTexts(): void {
    for (let seq = this.#oldest; seq < this.#count; seq++) {
      const over = this.#at(seq)!;
      if (isRoutedRequest(over))
        this.#slots[seq % this.#slots.length] = { ...over, labels: {}, clientRequestId: undefined };
    }
  }

  /** Returns matching requests, newest first. */
  find(matches: (over: FinishedRequest) => boolean, most: number): FinishedRequest[] {
    const found: FinishedRequest[] = [];
    for (let seq = this.#count - 1; seq >= this.#oldest && found.length < most; seq--)
      if (matches(this.#at(seq)!)) found.push(this.#at(seq)!);
    return found;
  }

  /** Reads entries from `after` on, in order of arrival. `undefined`: from the oldest entry. */
  read(
    after: number | undefined,
    matches: (over: FinishedRequest) => boolean,
    most: number,
  ): RingPage {
    const rows = { first: this.#oldest, count: this.#count, at: (seq: number) => this.#at(seq)! };
    return pageOf(rows, after, matches, most);
  }

  /**
   * Returns a view of the requests of an account and the accounts below it. Its sequence numbers
   * and counts are not affected by other requests. `undefined`: all requests.
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

  /** Resolves when a request is added. */
  whenAdded(): Promise<void> {
    return this.#added.promise;
  }

  /** Counts an entry that is overwritten by a newer entry. */
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

/**
 * Counts of one account: requests ever added, requests overwritten, and the time of the last
 * overwritten one, in Unix milliseconds.
 */
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
  // A sequence number from the future was issued by an earlier process.
  const requested = after === undefined || after > count ? first : after;
  const from = Math.max(requested, first);
  const items: RingEntry[] = [];
  let seq = from;
  for (; seq < count && items.length < most; seq++) {
    const over = rows.at(seq);
    if (fits(over)) items.push({ seq, request: over });
  }
  return { items, next: seq, missedCount: from - requested };
}

/**
 * Returns the record in its stored form. It has no labels, because they may identify a person, and
 * no trace state, because clients can write anything there. Long model names are truncated.
 */
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

/** Truncates a text into a new string, because a slice would keep the whole original in memory. */
const truncate = (text: string): string =>
  text.length <= MAX_TEXT_CHARS ? text : Buffer.from(text.slice(0, MAX_TEXT_CHARS)).toString();
