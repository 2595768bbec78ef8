// Requests that are over, the last so many of them: what an operator asks about a minute later. A ring, so that it never grows,
// and its readers are no part of it: one that is slow is overtaken, and told by how much.
import { wallClock } from "../../lib/wall-clock.ts";
import type { RequestRecord, TurnedAway } from "../../plugin/observer.ts";

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
    for (let seq = first; seq < this.#count; seq++) slots[seq % most] = this.#at(seq);
    this.#slots = slots;
    this.#first = first;
  }

  add(batch: readonly Over[]): void {
    const most = this.#slots.length;
    if (most === 0) return;
    for (const over of batch) this.#slots[this.#count++ % most] = bounded(over);
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
    // A place that is still to come is one of an earlier process.
    const asked = after === undefined || after > this.#count ? this.#first : after;
    const from = Math.max(asked, this.#first);
    const items: Placed[] = [];
    let seq = from;
    for (; seq < this.#count && items.length < most; seq++) {
      const over = this.#at(seq)!;
      if (fits(over)) items.push({ seq, over });
    }
    return { items, next: seq, missed: from - asked };
  }

  /** Resolves when something has come. */
  grown(): Promise<void> {
    return this.#grown.promise;
  }

  #at(seq: number): Over | undefined {
    return this.#slots[seq % this.#slots.length];
  }
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
