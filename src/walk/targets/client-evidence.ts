// What the requests of one client (one key) show about one target. A failure of one client's request may be the fault of that request, so
// it counts for that client alone. Several clients that fail are evidence against the target itself: see upstream-target.ts.
import { Breaker } from "./breaker.ts";
import { ConcurrencyLimit, type Later } from "./concurrency-limit.ts";

/** So many distinct requests in a row, or more than this share of so many, open a breaker. */
export const ENOUGH = 5;
export const SHARE = 0.1;
export const SAMPLES = 20;
/** What happened so long ago counts half. */
const HALF_MS = 5_000;
/** Less than this is forgotten. */
const FORGOTTEN = 0.25;
/** A client that has not been here for so long is forgotten. */
const AWAY_MS = 120_000;
/** So many failures in a row, and then each time that there are so many more, reduce the limit. */
const RUN = { first: 50, more: 10 };

export interface FailedCall {
  readonly now: number;
  /** The request's id. */
  readonly request: string;
  /** The client sent it again by itself: it is no other request than the one before. */
  readonly repeated: boolean;
  /** The provider said how long it refuses: that counts elsewhere. */
  readonly told: boolean;
}

export class ClientEvidence {
  readonly breaker = new Breaker();
  /** While nothing succeeds. */
  limit: ConcurrencyLimit | undefined;
  /** Distinct requests that failed since the last success. */
  row = 0;
  #run = 0;
  #good = 0;
  #bad = 0;
  #at: number;
  #seen: number;
  #last: string | undefined;

  constructor(now: number) {
    this.#at = this.#seen = now;
  }

  /** Requests that failed lately, those of some time ago for less. */
  bad(now: number): number {
    this.#decay(now);
    return Math.max(this.row, this.#bad);
  }

  /** Whether this client's own requests suffice to open its breaker. */
  get enough(): boolean {
    if (this.row >= ENOUGH) return true;
    const all = this.#good + this.#bad;
    return this.#bad >= ENOUGH && all >= SAMPLES && this.#bad > SHARE * all;
  }

  failed({ now, request, repeated, told }: FailedCall, clock: TargetClock): void {
    this.#decay(now);
    this.#seen = now;
    this.#run++;
    if (this.#run === RUN.first) this.limit ??= new ConcurrencyLimit(clock.later, clock.now);
    else if (this.#run > RUN.first && this.#run % RUN.more === 0) this.limit?.decrease();
    if (told || repeated || request === this.#last) return;
    this.row++;
    this.#bad++;
    this.#last = request;
  }

  /** `began`: when the call that succeeded began. Returns whether its breaker closes by this. */
  answered(now: number, began: number): boolean {
    this.#decay(now);
    this.#seen = now;
    this.#good++;
    this.row = this.#run = 0;
    this.#last = undefined;
    this.limit?.lift();
    this.limit = undefined;
    return this.breaker.answered(began);
  }

  /** At least half of this client's requests succeed, as far as is known. */
  likely(now: number): boolean {
    this.#decay(now);
    return this.breaker.closed && this.#bad <= this.#good + 1;
  }

  /** The target itself works again: earlier failures are no evidence against it. */
  clear(): void {
    this.row = this.#bad = 0;
  }

  /** Nothing is known against the target any more. */
  idle(now: number): boolean {
    if (now - this.#seen > AWAY_MS) return true;
    if (!this.breaker.closed || this.limit) return false;
    this.#decay(now);
    return this.row === 0 && this.#bad < FORGOTTEN;
  }

  #decay(now: number): void {
    const kept = 2 ** ((this.#at - now) / HALF_MS);
    this.#at = now;
    this.#good *= kept;
    this.#bad *= kept;
  }
}

export interface TargetClock {
  readonly now: () => number;
  readonly later: Later;
}
