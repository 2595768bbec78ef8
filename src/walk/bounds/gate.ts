// Which requests are let in when there are more than can be served: as many at once as the limit says, some more for a short
// while, and the rest is refused before its body is read. While the queue comes and goes it is served in its order. One that stands
// is overload: then the newest goes first, for its client still waits, and the others are refused within milliseconds instead of
// in the end. A key that has less than its share goes before one that has more, and waits longer.
import { fault } from "../../model/error.ts";
import { blame } from "../upstream/blame.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { Strain } from "./strain.ts";

/** In overload: a slot that is about to be free is worth so long a wait. */
const MOMENT_MS = 3;
/** The queue has half of what is served, and this at least. */
const LEAST_WAITING = 64;
const AGAIN_MS = { least: 1_000, more: 2_000 };

export interface GateLimits {
  /** Calls at once. */
  readonly most: number;
  /** How long a request may wait for its turn. */
  readonly waitMs: number;
}

/** What one key has here. It stands in the map while it has anything. */
interface Share {
  readonly who: string;
  running: number;
  readonly waiting: Waiter[];
}

interface Waiter {
  readonly due: number;
  go(): void;
  refuse(error: Error): void;
}

export class Gate {
  readonly #limit: AdaptiveLimit;
  readonly #strain: Pick<Strain, "watch" | "strained" | "over">;
  readonly #now: () => number;
  readonly #shares = new Map<string, Share>();
  #waitMs: number;
  #running = 0;
  #waiting = 0;
  /** When the queue was empty last. */
  #empty: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    { most, waitMs }: GateLimits,
    strain: Pick<Strain, "watch" | "strained" | "over">,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now;
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

  /** Before anything is asked of a request: while the process can take nothing it is refused. */
  arrive(): void {
    this.#strain.watch();
    if (this.#strain.over) throw busy();
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
      throw busy();
    }
    const modest = load(share) < this.#limit.now / this.#shares.size;
    const wait = this.#stands(now) && !modest ? MOMENT_MS : this.#waitMs;
    return new Promise<void>((go, refuse) => {
      share.waiting.push({ due: now + wait, go, refuse });
      this.#waiting++;
      this.#watch(now);
    });
  }

  /** The queue has not been empty for as long as one may wait in it. */
  #stands(now: number): boolean {
    return this.#waiting > 0 && now - this.#empty > this.#waitMs;
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
    const [waiter] = share.waiting.splice(at, 1);
    this.#waiting--;
    this.#forget(share);
    waiter!.refuse(busy());
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

  #watch(now: number): void {
    if (this.#timer) return;
    let due = Infinity;
    for (const { waiting } of this.#shares.values())
      for (const waiter of waiting) due = Math.min(due, waiter.due);
    this.#timer = setTimeout(() => this.#late(), Math.max(1, Math.min(due - now, MOMENT_MS)));
  }

  /** Those that have waited long enough. */
  #late(): void {
    this.#timer = undefined;
    const now = this.#now();
    this.#look(now);
    for (const share of this.#shares.values())
      for (let i = share.waiting.length - 1; i >= 0; i--)
        if (share.waiting[i]!.due <= now) this.#refuse(share, i);
    if (this.#waiting === 0) this.#empty = now;
    else this.#watch(now);
  }
}

const load = ({ running, waiting }: Share): number => running + waiting.length;

/** At a time of its own for each client: those that were refused together do not come back together. */
function busy(): Error {
  const retryAfterMs = Math.round(AGAIN_MS.least + Math.random() * AGAIN_MS.more);
  const words = "The gateway has more to do than it can. Try again in a moment.";
  return blame(fault("overloaded", words, { code: "gateway_overloaded", retryAfterMs }), "gateway");
}
