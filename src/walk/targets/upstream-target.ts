// What is known of one target: a model of a provider, at one address, under one credential. It decides what is tried after the others
// (cooldown), what refuses without a call (a `retry-after` for the whole account), and how many retries there may be. It outlives
// generations and reads no clock: every `now` is the monotonic one, in milliseconds.
import type { ErrorKind, Fault } from "../../model/error.ts";
import { Breaker } from "./breaker.ts";
import { ClientEvidence, ENOUGH, SAMPLES, SHARE, type TargetClock } from "./client-evidence.ts";
import type { CallPlace } from "./concurrency-limit.ts";
import { Latency } from "./latency.ts";
import { Ramp } from "./ramp.ts";
import type { Pause } from "./pause.ts";
import {
  stronger,
  type CallFacts,
  type Pass,
  type Resting,
  type TargetName,
  type TargetRest,
  type TargetState,
} from "./target-rest.ts";
import { Window } from "./window.ts";

/** A target that was away for longer does not get all requests at once when it is back. */
const LONG_MS = 5_000;
/** A rejected credential needs an operator. */
const REFUSED_MS = 60_000;
/** So many calls in a row for which there was no connection. */
const UNREACHED = 3;
/** The newest result counts for so much of the average. */
const NEW = 0.05;
/** Clients that are remembered; the oldest one is forgotten. */
const MOST_CLIENTS = 256;

export class UpstreamTarget {
  readonly name: TargetName;
  /** Of its credential, for all models. */
  readonly account: Pause;
  /** Of its credential for this model. */
  readonly limit: Pause;
  readonly #clock: TargetClock;
  readonly #window = new Window();
  /** Opened by several clients together, or where there is no connection. */
  readonly #breaker = new Breaker();
  /** Of clients that have seen failures lately. */
  readonly #clients = new Map<string, ClientEvidence>();
  readonly #ramp = new Ramp();
  #why: ErrorKind = "overloaded";
  #unreached = 0;
  #score = 1;
  /** Calls per second before it failed; 0: unknown. */
  #pace = 0;
  #awaySince = -1;
  #latencies: readonly [whole: Latency, stream: Latency] | undefined;

  constructor(name: TargetName, account: Pause, limit: Pause, clock: TargetClock) {
    this.name = name;
    this.account = account;
    this.limit = limit;
    this.#clock = clock;
  }

  /** How long it takes until its first content, of a stream or of a whole answer. */
  timed(stream: boolean): Latency {
    this.#latencies ??= [new Latency(), new Latency()];
    return this.#latencies[stream ? 1 : 0];
  }

  /** Its speed is not measured. */
  get untimed(): boolean {
    return this.#latencies === undefined;
  }

  /** No failure is known: all that is looked at while it works. */
  get well(): boolean {
    return (
      !this.account.active &&
      !this.limit.active &&
      this.#breaker.closed &&
      this.#clients.size === 0 &&
      !this.#ramp.active
    );
  }

  /** It is in no cooldown of its own, of whichever client. */
  get calm(): boolean {
    if (this.limit.active || !this.#breaker.closed) return false;
    for (const { breaker } of this.#clients.values()) if (!breaker.closed) return false;
    return true;
  }

  /** The share of the newest calls that succeeded: which of several in cooldown is tried first. */
  get score(): number {
    return this.#score;
  }

  /** Why this client's requests are sent elsewhere while there is another candidate; of several reasons, the strongest. */
  rest(now: number, who: string): TargetRest | undefined {
    if (this.well) return undefined;
    const { account } = this;
    const own = stronger(
      stronger(this.#limited(now), this.#opened(this.#breaker, now)),
      this.#opened(this.#clients.get(who)?.breaker, now),
    );
    const refused: TargetRest | undefined = account.rests(now)
      ? { state: "refused", why: account.why, until: account.until, refuses: false }
      : undefined;
    const rest = stronger(refused, own);
    if (rest || !this.#ramp.full(now)) return rest;
    return { state: "recovering", why: this.#why, until: now, refuses: false };
  }

  /** What `status` shows, its credential apart; undefined: no failure is known. */
  state(now: number): TargetRest | undefined {
    const why = this.#why;
    const shared = stronger(this.#limited(now), this.#opened(this.#breaker, now));
    // A breaker that probes does not hide those of single clients.
    if (shared && shared.state !== "half_open") return shared;
    let rest: TargetRest | undefined;
    const keys: string[] = [];
    const half: string[] = [];
    for (const [key, { breaker }] of this.#clients) {
      const opened = this.#opened(breaker, now);
      if (opened) keys.push(key);
      else if (!breaker.closed) half.push(key);
      rest = stronger(rest, opened);
    }
    if (rest) return { ...rest, keys };
    const probed: TargetRest = { state: "half_open", why, until: now, refuses: false };
    if (!this.#breaker.closed) return probed;
    if (half.length > 0) return { ...probed, keys: half };
    if (!this.#ramp.lasts(now)) return undefined;
    return { state: "recovering", why, until: this.#ramp.until, refuses: false };
  }

  #limited(now: number): TargetRest | undefined {
    const { limit } = this;
    if (!limit.rests(now)) return undefined;
    return { state: "told", why: limit.why, until: limit.until, refuses: limit.refuses(now) };
  }

  #opened(breaker: Breaker | undefined, now: number): TargetRest | undefined {
    const state = breaker?.state(now) ?? "closed";
    if (state === "closed" || (state === "half_open" && !breaker!.probing)) return undefined;
    return {
      state,
      why: this.#why,
      until: state === "open" ? breaker!.until : now,
      refuses: false,
    };
  }

  /** Whether it may be called now in its place; at most one call of each breaker probes. */
  enter(now: number, who: string): Pass | undefined {
    if (this.well) return "plain";
    if (this.account.rests(now) || this.limit.rests(now)) return undefined;
    const shared = this.#breaker;
    const own = this.#clients.get(who)?.breaker;
    if (!shared.closed && !shared.probe(now)) return undefined;
    if (own && !own.closed) {
      if (own.probe(now)) return "probe";
      if (!shared.closed) shared.release();
      return undefined;
    }
    if (!shared.closed) return "probe";
    return this.#ramp.active && !this.#ramp.pass(now) ? undefined : "plain";
  }

  /** It is called although it recovers. */
  took(now: number): void {
    this.#ramp.took(now);
  }

  /** A further call of this client is likely to succeed here. */
  likely(now: number, who: string): boolean {
    return this.#breaker.closed && (this.#clients.get(who)?.likely(now) ?? true);
  }

  /** Whether a request of this client would have to wait. */
  full(who: string): boolean {
    return this.#clients.get(who)?.limit?.full ?? false;
  }

  /** A place among the calls that this client may have here at once, where that is limited. */
  place(who: string, waitMs: number): CallPlace | Promise<CallPlace> | undefined {
    const { provider, model } = this.name;
    return this.#clients.get(who)?.limit?.enter(waitMs, `${provider}/${model}`);
  }

  /** Returns which cooldown begins or grows by this. */
  failed(now: number, fault: Fault, rests: Resting, of: CallFacts): TargetState | undefined {
    const { kind } = fault;
    const told = fault.retryAfterMs ?? undefined;
    const { started, who, request, repeated } = of;
    if (rests === "credential") {
      const pause = { ms: told ?? REFUSED_MS, refuses: false, started };
      return this.account.begin(now, kind, pause) ? "refused" : undefined;
    }
    // A request that is too large for a limit shows nothing about other requests.
    if (of.scope === "request") return undefined;
    this.#score -= this.#score * NEW;
    const client = this.#client(now, who);
    const limited = kind === "rate_limited" && told !== undefined;
    client.failed({ now, request, repeated, told: limited }, this.#clock);
    if (limited) {
      const pause = { ms: told, refuses: of.scope === "account", started };
      return this.limit.begin(now, kind, pause) ? this.#away(now, "told") : undefined;
    }
    this.#window.add("bad", now);
    this.#why = kind;
    this.#unreached = of.unsent ? this.#unreached + 1 : 0;
    const probe = of.pass === "probe";
    const own = client.breaker.failed(now, { enough: client.enough, probe });
    const enough = this.#unreached >= UNREACHED || this.#several(now);
    const all = this.#breaker.failed(now, { enough, probe });
    if (all) return this.#away(now, "open");
    return own ? "open" : undefined;
  }

  /** Whether the clients without the one that fails most are enough to open the breaker for all. */
  #several(now: number): boolean {
    let [sum, most] = [0, 0];
    for (const client of this.#clients.values()) {
      const bad = client.bad(now);
      sum += bad;
      most = Math.max(most, bad);
    }
    const others = sum - most;
    if (others < ENOUGH) return false;
    const all = others + this.#window.sum("good", now);
    return others > SHARE * all && (all >= SAMPLES || others >= all);
  }

  /** Its provider rejected a request as faulty: it works. `started`: when the call began. */
  there(started: number): void {
    this.#unreached = 0;
    this.#breaker.answered(started);
  }

  /** Returns whether a cooldown ends by this success. */
  answered(now: number, started: number, who: string): boolean {
    this.#window.add("good", now);
    this.#score += (1 - this.#score) * NEW;
    if (this.well) return false;
    this.#unreached = 0;
    const calm = this.calm;
    const account = this.account.end(started);
    this.limit.end(started);
    if (this.#breaker.answered(started))
      for (const client of this.#clients.values()) client.clear();
    this.#clients.get(who)?.answered(now, started);
    for (const [each, client] of this.#clients) if (client.idle(now)) this.#clients.delete(each);
    if (!this.calm) return account;
    if (this.#awaySince >= 0) {
      if (now - this.#awaySince >= LONG_MS) this.#ramp.begin(now, this.#pace);
      this.#awaySince = -1;
    }
    return account || !calm;
  }

  /** An operator ends its cooldowns. */
  wake(now: number): void {
    this.account.end(now);
    this.limit.end(now);
    this.#breaker.answered(now);
    for (const { limit } of this.#clients.values()) limit?.lift();
    this.#clients.clear();
    this.#ramp.end();
    this.#unreached = 0;
    this.#awaySince = -1;
  }

  /** A probe is over, whatever it has found. */
  release(who: string): void {
    this.#breaker.release();
    this.#clients.get(who)?.breaker.release();
  }

  #client(now: number, who: string): ClientEvidence {
    let client = this.#clients.get(who);
    if (client) return client;
    if (this.#clients.size >= MOST_CLIENTS) {
      const [oldest] = this.#clients.keys();
      this.#clients.get(oldest!)!.limit?.lift();
      this.#clients.delete(oldest!);
    }
    client = new ClientEvidence(now);
    this.#clients.set(who, client);
    return client;
  }

  /** It is in cooldown from now on, if it was not before. */
  #away(now: number, by: TargetState): TargetState {
    if (this.#awaySince >= 0) return by;
    this.#awaySince = now;
    this.#ramp.end();
    this.#pace = this.#window.sum("good", now) > 0 ? this.#window.pace(now) : 0;
    return by;
  }
}
