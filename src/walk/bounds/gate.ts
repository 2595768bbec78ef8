// Which requests are let in when there are more than can be served: as many at once as the limit says, some more for a short
// while, and the rest is refused before its body is read. While the queue comes and goes it is served in its order. One that stands
// is overload: then the newest goes first, for its client still waits, and the others are refused within milliseconds instead of
// in the end. It lasts until none was refused for a while: that refusals emptied the queue says nothing. A key that has less than
// its share goes before one that has more, and waits longer.
import { fault } from "../../model/error.ts";
import { blame } from "../upstream/blame.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { Strain } from "./strain.ts";

/** The code of every refusal here. */
export const OVERLOADED = "gateway_overloaded";

/** In overload: a slot that is about to be free is worth so long a wait, */
const MOMENT_MS = 2;
/** to so many of a key for each slot there is. Those that wait longer or are more are refused, the oldest first. */
const ABOUT_TO_BE_FREE = 1 / 32;
/** A timer that is later than this: the process did not run. */
const STOOD_MS = 20;
/** The queue has half of what is served, and this at least. */
const LEAST_WAITING = 64;
/** A flood of refusals is one line in so long. */
const TELL_MS = 10_000;
const AGAIN_MS = { least: 1_000, more: 2_000 };

export interface GateLimits {
  /** Calls at once. */
  readonly most: number;
  /** How long a request may wait for its turn. */
  readonly waitMs: number;
}

/** What an operator is told of refusals. */
export interface RefusedLoad {
  /** Since the last word of it. */
  readonly refused: number;
  readonly running: number;
  readonly waiting: number;
  readonly limit: number;
}

/** What one key has here. It stands in the map while it has anything. */
interface Share {
  readonly who: string;
  running: number;
  readonly waiting: Waiter[];
}

interface Waiter {
  readonly since: number;
  go(): void;
  refuse(error: Error): void;
}

export class Gate {
  readonly #limit: AdaptiveLimit;
  readonly #strain: Pick<Strain, "watch" | "strained" | "over">;
  readonly #tell: (load: RefusedLoad) => void;
  readonly #now: () => number;
  readonly #shares = new Map<string, Share>();
  #waitMs: number;
  #running = 0;
  #waiting = 0;
  /** When the queue was empty last. */
  #empty: number;
  /** Overload lasts until then. */
  #until = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  /** Time in which the process did not run, though something waited here: it was not the queue that took it. */
  #stood = 0;
  #refused = 0;
  #told = -Infinity;

  constructor(
    { most, waitMs }: GateLimits,
    strain: Pick<Strain, "watch" | "strained" | "over">,
    tell: (load: RefusedLoad) => void = () => {},
    now: () => number = () => performance.now(),
  ) {
    this.#tell = tell;
    this.#now = () => now() - this.#stood;
    this.#empty = now();
    this.#limit = new AdaptiveLimit(most, this.#empty);
    this.#strain = strain;
    this.#waitMs = waitMs;
  }

  /** Other limits, from now on. */
  limit({ most, waitMs }: GateLimits): void {
    this.#limit.most(most);
    this.#waitMs = waitMs;
  }

  /** How long a request may wait for its turn. */
  get waitMs(): number {
    return this.#waitMs;
  }
  get running(): number {
    return this.#running;
  }
  get waiting(): number {
    return this.#waiting;
  }
  get most(): number {
    return this.#limit.now;
  }

  /** What a call cost this process before it was sent. */
  took(ms: number): void {
    this.#limit.took(ms);
  }

  /** Before anything is asked of a request: while the process can take nothing more it is refused. */
  arrive(): void {
    this.#strain.watch();
    if (this.#strain.over && this.#running > 0) throw this.#busy(this.#now());
  }

  /** Throws where it is one too many. A promise: it waits for its turn, and may be refused. */
  enter(who: string): Promise<void> | undefined {
    const share = this.#shareOf(who);
    if (this.#waiting === 0) {
      if (this.#running < this.#limit.now) {
        share.running++;
        this.#running++;
        return undefined;
      }
      this.#look(this.#now());
    }
    return this.#queued(share);
  }

  leave(who: string): void {
    this.#running--;
    const share = this.#shares.get(who)!;
    share.running--;
    this.#forget(share);
    this.#look(this.#now());
  }

  #shareOf(who: string): Share {
    let share = this.#shares.get(who);
    if (!share) this.#shares.set(who, (share = { who, running: 0, waiting: [] }));
    return share;
  }

  #forget(share: Share): void {
    if (share.running === 0 && share.waiting.length === 0) this.#shares.delete(share.who);
  }

  #queued(share: Share): Promise<void> {
    const now = this.#now();
    if (this.#waiting === 0) this.#empty = now;
    if (this.#waiting >= Math.max(LEAST_WAITING, this.#limit.now / 2) && !this.#makeRoom(share)) {
      this.#forget(share);
      throw this.#busy(now);
    }
    const turn = new Promise<void>((go, refuse) => {
      share.waiting.push({ since: now, go, refuse });
      this.#waiting++;
      if (!this.#timer) this.#wake(now);
    });
    const few = Math.max(1, this.#limit.now * ABOUT_TO_BE_FREE);
    if (share.waiting.length > few && this.#stands(now) && this.#hasMuch(share))
      this.#refuse(share, 0);
    return turn;
  }

  /** The queue has not been empty for as long as one may wait in it, or was so a moment ago: there is too much. */
  #stands(now: number): boolean {
    return now < this.#until || (this.#waiting > 0 && now - this.#empty > this.#waitMs);
  }

  /** More than its part of what there is. */
  #hasMuch(share: Share): boolean {
    return load(share) > this.#limit.now / this.#shares.size;
  }

  /** The key with the most here gives up its oldest place to one that has less. */
  #makeRoom(share: Share): boolean {
    let greediest: Share | undefined;
    for (const each of this.#shares.values())
      if (each.waiting.length > 0 && (!greediest || load(each) > load(greediest))) greediest = each;
    if (!greediest || load(greediest) <= load(share) + 1) return false;
    this.#refuse(greediest, 0);
    return true;
  }

  #refuse(share: Share, at: number): void {
    const error = this.#busy(this.#now());
    const [waiter] = share.waiting.splice(at, 1);
    this.#waiting--;
    this.#forget(share);
    waiter!.refuse(error);
  }

  #busy(now: number): Error {
    if (this.#stands(now)) this.#until = now + this.#waitMs;
    this.#refused++;
    if (now - this.#told > TELL_MS) {
      const [refused, running, waiting] = [this.#refused, this.#running, this.#waiting];
      this.#tell({ refused, running, waiting, limit: this.#limit.now });
      this.#refused = 0;
      this.#told = now;
    }
    return busy();
  }

  /** The limit is looked at, and whatever there is room for goes in. */
  #look(now: number): void {
    this.#limit.look(now, this.#running, this.#strain.strained);
    if (this.#waiting === 0) {
      this.#empty = now;
      return;
    }
    while (this.#waiting > 0 && this.#running < this.#limit.now) this.#next(now);
    if (this.#waiting === 0) this.#empty = now;
  }

  #next(now: number): void {
    let next: Share | undefined;
    for (const each of this.#shares.values())
      if (each.waiting.length > 0 && (!next || each.running < next.running)) next = each;
    const waiter = this.#stands(now) ? next!.waiting.pop()! : next!.waiting.shift()!;
    this.#waiting--;
    this.#running++;
    next!.running++;
    waiter.go();
  }

  /** Those that have waited long enough. */
  #late(): void {
    this.#timer = undefined;
    const late = this.#now() - this.#due;
    if (late > STOOD_MS) this.#stood += late;
    const now = this.#now();
    this.#look(now);
    const stands = this.#stands(now);
    for (const share of this.#shares.values()) {
      const most = stands && this.#hasMuch(share) ? MOMENT_MS : this.#waitMs;
      while (share.waiting.length > 0 && now - share.waiting[0]!.since >= most)
        this.#refuse(share, 0);
    }
    if (this.#waiting === 0) this.#empty = now;
    else this.#wake(now);
  }

  #wake(now: number): void {
    this.#due = now + MOMENT_MS;
    this.#timer = setTimeout(() => this.#late(), MOMENT_MS);
  }
}

const load = ({ running, waiting }: Share): number => running + waiting.length;

/** At a time of its own for each client: those that were refused together do not come back together. */
function busy(): Error {
  const retryAfterMs = Math.round(AGAIN_MS.least + Math.random() * AGAIN_MS.more);
  const words = "The gateway has more to do than it can.";
  return blame(fault("overloaded", words, { code: OVERLOADED, retryAfterMs }), "gateway");
}
