// What is known of one target: a model of a provider, at one address, under one credential. It says whether it may be asked, and is
// told what became of each call. It outlives generations and reads no clock: every `now` is the monotonic one, in milliseconds.
import type { ErrorKind, Fault } from "../../model/error.ts";
import { Breaker } from "./breaker.ts";
import { Latency } from "./latency.ts";
import { Ramp } from "./ramp.ts";
import type { Pause } from "./pause.ts";
import { Window } from "./window.ts";

/** Retries that a target gets within the window: this share of what it has answered, and so many at least. */
const SHARE = 0.1;
const LEAST = 3;
/** One that was away for longer is not asked by all at once when it is back. */
const LONG_MS = 5_000;
/** A credential that is refused is mended by a person. */
const REFUSED_MS = 60_000;

/** What a kind of failure rests, as ERRORS says it. */
type Resting = "target" | "credential" | "credential+model";

/**
 * refused: its credential. told: its provider said how long. open, half_open: its breaker. recovering: it answers again and gets
 * little more than it had before it failed.
 */
export type TargetState = "refused" | "told" | "open" | "half_open" | "recovering";

export interface TargetRest {
  readonly state: TargetState;
  readonly why: ErrorKind;
  readonly until: number;
  /** It may answer long before: nothing but its failures has said how long. */
  readonly supposed?: boolean;
}

export interface TargetName {
  readonly provider: string;
  readonly credential: string;
  readonly model: string;
  /** Its endpoint's address; "" for a native endpoint without one. */
  readonly base: string;
}

/**
 * How a call got to be asked. probe: it is the one that goes to see whether an open breaker may close. spare: its target rests, no
 * other was left, and the target's budget of retries allowed it. The first content of either says that the rest is over.
 */
export type Pass = "plain" | "probe" | "spare";

export class UpstreamTarget {
  readonly name: TargetName;
  /** Of its credential, for all models. */
  readonly account: Pause;
  /** Of its credential for this model. */
  readonly limit: Pause;
  readonly #window = new Window();
  readonly #breaker = new Breaker();
  readonly #ramp = new Ramp();
  #why: ErrorKind = "overloaded";
  /** What it was asked for in a second before it failed; 0: it had answered nothing, so that is not known. */
  #pace = 0;
  #awaySince = -1;
  #latencies: readonly [whole: Latency, stream: Latency] | undefined;

  constructor(name: TargetName, account: Pause, limit: Pause) {
    this.name = name;
    this.account = account;
    this.limit = limit;
  }

  /** How long it takes until its first content, of a stream or of a whole answer. */
  timed(stream: boolean): Latency {
    this.#latencies ??= [new Latency(), new Latency()];
    return this.#latencies[stream ? 1 : 0];
  }

  /** Nothing goes by how fast it is. */
  get untimed(): boolean {
    return this.#latencies === undefined;
  }

  /** Nothing is known against it: the one thing that is looked at while all is well. */
  get well(): boolean {
    return !this.account.active && this.calm && !this.#ramp.active;
  }

  /** Neither what its provider said nor its breaker keeps it away. */
  get calm(): boolean {
    return !this.limit.active && this.#breaker.closed;
  }

  /** Why it is not asked while another may be; of two reasons, the one that lasts longer. */
  rest(now: number): TargetRest | undefined {
    if (this.well) return undefined;
    const own = this.#own(now);
    const { account } = this;
    if (!account.rests(now)) return own;
    return own && own.until > account.until
      ? own
      : { state: "refused", why: account.why, until: account.until };
  }

  /** What `status` says of it, its credential apart; undefined: it is well. */
  state(now: number): TargetRest | undefined {
    const own = this.#own(now);
    if (own) return own;
    const why = this.#why;
    if (!this.#breaker.closed) return { state: "half_open", why, until: now };
    return this.#ramp.lasts(now)
      ? { state: "recovering", why, until: this.#ramp.until }
      : undefined;
  }

  #own(now: number): TargetRest | undefined {
    const { limit } = this;
    const breaker = this.#breaker;
    const why = this.#why;
    const state = breaker.state(now);
    const told = limit.rests(now) ? limit.until : 0;
    if (state === "open" && breaker.until > told)
      return { state, why, until: breaker.until, supposed: true };
    if (told > 0) return { state: "told", why: limit.why, until: told, supposed: limit.supposed };
    if (state === "half_open" && breaker.probing) return { state, why, until: now };
    if (state === "closed" && this.#ramp.full(now)) return { state: "recovering", why, until: now };
    return undefined;
  }

  /** Whether it may be asked now, as if it were well; at most one call goes to see whether it answers again. */
  enter(now: number): Pass | undefined {
    if (this.well) return "plain";
    if (this.account.rests(now) || this.limit.rests(now)) return undefined;
    if (!this.#breaker.closed) return this.#breaker.probe(now) ? "probe" : undefined;
    return this.#ramp.active && !this.#ramp.pass(now) ? undefined : "plain";
  }

  /** It was asked although it recovers. */
  took(now: number): void {
    this.#ramp.took(now);
  }

  /**
   * Whether it may be asked once more, or although it rests: that takes one from its budget. `halved`: the client tries again by
   * itself, so what is tried here comes on top of it.
   */
  again(now: number, halved: boolean): boolean {
    const most = Math.max(LEAST, SHARE * this.#window.sum("good", now)) * (halved ? 0.5 : 1);
    if (this.#window.sum("again", now) + 1 > most) return false;
    this.#window.add("again", now);
    return true;
  }

  /** Says what keeps it away by this that did not before. `chance`: 0 to 1, as Math.random. */
  failed(
    now: number,
    fault: Fault,
    of: { rests: Resting; probe: boolean; started: number },
    chance: () => number,
  ): TargetState | undefined {
    const told = fault.retryAfterMs ?? undefined;
    const { kind } = fault;
    const { started } = of;
    if (of.rests === "credential") {
      const usual = REFUSED_MS;
      return this.account.begin(now, kind, { told, usual, started }, chance)
        ? "refused"
        : undefined;
    }
    if (of.rests === "target") {
      this.#window.add("bad", now);
      this.#why = kind;
      const [good, bad] = [this.#window.sum("good", now), this.#window.sum("bad", now)];
      if (this.#breaker.failed(now, { good, bad, probe: of.probe })) return this.#away(now, "open");
      if (told === undefined) return undefined;
    }
    return this.limit.begin(now, kind, { told, started }, chance)
      ? this.#away(now, "told")
      : undefined;
  }

  /** Its provider has looked at a request and found fault with that: it is there. `started`: when its call began. */
  there(started: number): void {
    this.#breaker.answered(started);
  }

  /** Says whether something that kept it away has ended by this answer. */
  answered(now: number, started: number): boolean {
    this.#window.add("good", now);
    if (this.well) {
      this.#breaker.answered(started);
      return false;
    }
    const account = this.account.end(started);
    const limit = this.limit.end(started);
    const breaker = this.#breaker.answered(started);
    if (this.calm && this.#awaySince >= 0) {
      if (now - this.#awaySince >= LONG_MS) this.#ramp.begin(now, this.#pace);
      this.#awaySince = -1;
    }
    return account || limit || breaker;
  }

  /** An operator says that it is to be asked: nothing is known against it any more. */
  wake(now: number): void {
    this.account.end(now);
    this.limit.end(now);
    this.#breaker.answered(now);
    this.#ramp.end();
    this.#awaySince = -1;
  }

  /** A call that went to see is over, whatever it has found. */
  release(): void {
    this.#breaker.release();
  }

  /** It is kept away from now on, if it was not before. */
  #away(now: number, by: TargetState): TargetState {
    if (this.#awaySince >= 0) return by;
    this.#awaySince = now;
    this.#ramp.end();
    this.#pace = this.#window.sum("good", now) > 0 ? this.#window.pace(now) : 0;
    return by;
  }
}
