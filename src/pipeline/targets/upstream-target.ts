// What is known of one target: a model of a provider, at one address, under one credential. It decides what is tried after the others
// (cooldown), what refuses without a call (a `retry-after` for the whole account), and how many retries there may be. It outlives
// generations and reads no clock: every `now` is the monotonic one, in milliseconds.
import type { ErrorKind, Fault } from "../../model/error.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import {
  ClientEvidence,
  MIN_FAILURES,
  MIN_SAMPLES,
  MAX_FAILURE_SHARE,
  type TargetClock,
} from "./client-evidence.ts";
import type { ConcurrencySlot } from "./concurrency-limit.ts";
import { Latency } from "./latency.ts";
import { SlowStart } from "./slow-start.ts";
import type { ProviderCooldown } from "./provider-cooldown.ts";
import {
  stronger,
  type FailureContext,
  type CallReason,
  type CooldownScope,
  type TargetName,
  type TargetStatus,
  type TargetState,
} from "./target-status.ts";
import { OutcomeWindow } from "./outcome-window.ts";

/** A target that was away for longer does not get all requests at once when it is back. */
const SLOW_START_AFTER_MS = 5_000;
/** A rejected credential needs an operator. */
const REJECTED_CREDENTIAL_MS = 60_000;
/** So many calls in a row for which there was no connection. */
const MAX_CONNECT_FAILURES = 3;
/** The newest result counts for so much of the average. */
const SMOOTHING = 0.05;
/** Clients that are remembered; the oldest one is forgotten. */
const MAX_CLIENTS = 256;

export class UpstreamTarget {
  readonly name: TargetName;
  /** Of its credential, for all models. */
  readonly credentialCooldown: ProviderCooldown;
  /** Of its credential for this model. */
  readonly modelCooldown: ProviderCooldown;
  readonly #clock: TargetClock;
  readonly #outcomes = new OutcomeWindow();
  /** Opened by several clients together, or where there is no connection. */
  readonly #breaker = new CircuitBreaker();
  /** Of clients that have seen failures lately. */
  readonly #clients = new Map<string, ClientEvidence>();
  readonly #slowStart = new SlowStart();
  #lastReason: ErrorKind = "overloaded";
  #connectFailures = 0;
  #successRate = 1;
  /** Calls per second before it failed; 0: unknown. */
  #rateBeforeFailure = 0;
  #coolingDownSince = -1;
  #latencies: readonly [whole: Latency, stream: Latency] | undefined;

  constructor(
    name: TargetName,
    account: ProviderCooldown,
    limit: ProviderCooldown,
    clock: TargetClock,
  ) {
    this.name = name;
    this.credentialCooldown = account;
    this.modelCooldown = limit;
    this.#clock = clock;
  }

  /** How long it takes until its first content, of a stream or of a whole answer. */
  latencyOf(stream: boolean): Latency {
    this.#latencies ??= [new Latency(), new Latency()];
    return this.#latencies[stream ? 1 : 0];
  }

  /** Its speed is not measured. */
  get isUnmeasured(): boolean {
    return this.#latencies === undefined;
  }

  /** No failure is known: all that is looked at while it works. */
  get isHealthy(): boolean {
    return (
      !this.credentialCooldown.isActive &&
      !this.modelCooldown.isActive &&
      this.#breaker.isClosed &&
      this.#clients.size === 0 &&
      !this.#slowStart.isActive
    );
  }

  /** It is in no cooldown of its own, of whichever client. */
  get hasNoCooldown(): boolean {
    if (this.modelCooldown.isActive || !this.#breaker.isClosed) return false;
    for (const { breaker } of this.#clients.values()) if (!breaker.isClosed) return false;
    return true;
  }

  /** The share of the newest calls that succeeded: which of several in cooldown is tried first. */
  get successRate(): number {
    return this.#successRate;
  }

  /** Why this client's requests are sent elsewhere while there is another candidate; of several reasons, the strongest. */
  statusFor(now: number, client: string): TargetStatus | undefined {
    if (this.isHealthy) return undefined;
    const { credentialCooldown } = this;
    const own = stronger(
      stronger(this.#modelCooldownStatus(now), this.#breakerStatus(this.#breaker, now)),
      this.#breakerStatus(this.#clients.get(client)?.breaker, now),
    );
    const refused: TargetStatus | undefined = credentialCooldown.isCoolingDown(now)
      ? {
          state: "credential_rejected",
          reason: credentialCooldown.reason,
          until: credentialCooldown.until,
          rejectsRequests: false,
        }
      : undefined;
    const rest = stronger(refused, own);
    if (rest || !this.#slowStart.isExhausted(now)) return rest;
    return { state: "recovering", reason: this.#lastReason, until: now, rejectsRequests: false };
  }

  /** What `status` shows, its credential apart; undefined: no failure is known. */
  overallStatus(now: number): TargetStatus | undefined {
    const why = this.#lastReason;
    const shared = stronger(
      this.#modelCooldownStatus(now),
      this.#breakerStatus(this.#breaker, now),
    );
    // A breaker that probes does not hide those of single clients.
    if (shared && shared.state !== "half_open") return shared;
    let rest: TargetStatus | undefined;
    const keys: string[] = [];
    const half: string[] = [];
    for (const [key, { breaker }] of this.#clients) {
      const opened = this.#breakerStatus(breaker, now);
      if (opened) keys.push(key);
      else if (!breaker.isClosed) half.push(key);
      rest = stronger(rest, opened);
    }
    if (rest) return { ...rest, keys };
    const probed: TargetStatus = {
      state: "half_open",
      reason: why,
      until: now,
      rejectsRequests: false,
    };
    if (!this.#breaker.isClosed) return probed;
    if (half.length > 0) return { ...probed, keys: half };
    if (!this.#slowStart.isActiveAt(now)) return undefined;
    return {
      state: "recovering",
      reason: why,
      until: this.#slowStart.endsAt,
      rejectsRequests: false,
    };
  }

  #modelCooldownStatus(now: number): TargetStatus | undefined {
    const { modelCooldown } = this;
    if (!modelCooldown.isCoolingDown(now)) return undefined;
    return {
      state: "retry_after",
      reason: modelCooldown.reason,
      until: modelCooldown.until,
      rejectsRequests: modelCooldown.rejectsRequests(now),
    };
  }

  #breakerStatus(breaker: CircuitBreaker | undefined, now: number): TargetStatus | undefined {
    const state = breaker?.state(now) ?? "closed";
    if (state === "closed" || (state === "half_open" && !breaker!.isProbing)) return undefined;
    return {
      state,
      reason: this.#lastReason,
      until: state === "open" ? breaker!.openUntil : now,
      rejectsRequests: false,
    };
  }

  /** Whether it may be called now in its place; at most one call of each breaker probes. */
  tryEnter(now: number, client: string): CallReason | undefined {
    if (this.isHealthy) return "plain";
    if (this.credentialCooldown.isCoolingDown(now) || this.modelCooldown.isCoolingDown(now))
      return undefined;
    const shared = this.#breaker;
    const own = this.#clients.get(client)?.breaker;
    if (!shared.isClosed && !shared.tryProbe(now)) return undefined;
    if (own && !own.isClosed) {
      if (own.tryProbe(now)) return "probe";
      if (!shared.isClosed) shared.releaseProbe();
      return undefined;
    }
    if (!shared.isClosed) return "probe";
    return this.#slowStart.isActive && !this.#slowStart.tryTake(now) ? undefined : "plain";
  }

  /** It is called although it recovers. */
  recordForcedCall(now: number): void {
    this.#slowStart.forceTake(now);
  }

  /** A further call of this client is likely to succeed here. */
  isLikelyToSucceed(now: number, client: string): boolean {
    return this.#breaker.isClosed && (this.#clients.get(client)?.isLikelyToSucceed(now) ?? true);
  }

  /** Whether a request of this client would have to wait. */
  isFull(client: string): boolean {
    return this.#clients.get(client)?.concurrencyLimit?.isFull ?? false;
  }

  /** A place among the calls that this client may have here at once, where that is limited. */
  acquireSlot(
    client: string,
    waitMs: number,
  ): ConcurrencySlot | Promise<ConcurrencySlot> | undefined {
    const { provider, model } = this.name;
    return this.#clients.get(client)?.concurrencyLimit?.acquire(waitMs, `${provider}/${model}`);
  }

  /** Returns which cooldown begins or grows by this. */
  recordFailure(
    now: number,
    fault: Fault,
    scope: CooldownScope,
    context: FailureContext,
  ): TargetState | undefined {
    const { kind } = fault;
    const retryAfterMs = fault.retryAfterMs ?? undefined;
    const { startedAt, client: who, requestId, isClientRetry } = context;
    if (scope === "credential") {
      const pause = {
        ms: retryAfterMs ?? REJECTED_CREDENTIAL_MS,
        refuses: false,
        started: startedAt,
      };
      return this.credentialCooldown.start(now, kind, pause) ? "credential_rejected" : undefined;
    }
    // A request that is too large for a limit shows nothing about other requests.
    if (context.limitScope === "request") return undefined;
    this.#successRate -= this.#successRate * SMOOTHING;
    const client = this.#evidenceOf(now, who);
    const limited = kind === "rate_limited" && retryAfterMs !== undefined;
    client.recordFailure({ now, requestId, isClientRetry, hasRetryAfter: limited }, this.#clock);
    if (limited) {
      const pause = {
        ms: retryAfterMs,
        refuses: context.limitScope === "account",
        started: startedAt,
      };
      return this.modelCooldown.start(now, kind, pause)
        ? this.#beginCooldown(now, "retry_after")
        : undefined;
    }
    this.#outcomes.record("bad", now);
    this.#lastReason = kind;
    this.#connectFailures = context.isUnsent ? this.#connectFailures + 1 : 0;
    const probe = context.reason === "probe";
    const opensForClient = client.breaker.recordFailure(now, {
      hasEnoughEvidence: client.hasEnoughEvidence,
      isProbe: probe,
    });
    const enough =
      this.#connectFailures >= MAX_CONNECT_FAILURES || this.#haveSeveralClientsFailed(now);
    const opensForAll = this.#breaker.recordFailure(now, {
      hasEnoughEvidence: enough,
      isProbe: probe,
    });
    if (opensForAll) return this.#beginCooldown(now, "open");
    return opensForClient ? "open" : undefined;
  }

  /** Whether the clients without the one that fails most are enough to open the breaker for all. */
  #haveSeveralClientsFailed(now: number): boolean {
    let [sum, most] = [0, 0];
    for (const client of this.#clients.values()) {
      const bad = client.recentFailures(now);
      sum += bad;
      most = Math.max(most, bad);
    }
    const others = sum - most;
    if (others < MIN_FAILURES) return false;
    const all = others + this.#outcomes.count("good", now);
    return others > MAX_FAILURE_SHARE * all && (all >= MIN_SAMPLES || others >= all);
  }

  /** Its provider rejected a request as faulty: it works. `started`: when the call began. */
  recordReachable(started: number): void {
    this.#connectFailures = 0;
    this.#breaker.recordSuccess(started);
  }

  /** Returns whether a cooldown ends by this success. */
  recordSuccess(now: number, started: number, who: string): boolean {
    this.#outcomes.record("good", now);
    this.#successRate += (1 - this.#successRate) * SMOOTHING;
    if (this.isHealthy) return false;
    this.#connectFailures = 0;
    const calm = this.hasNoCooldown;
    const account = this.credentialCooldown.end(started);
    this.modelCooldown.end(started);
    if (this.#breaker.recordSuccess(started))
      for (const client of this.#clients.values()) client.clearFailures();
    this.#clients.get(who)?.recordSuccess(now, started);
    for (const [each, client] of this.#clients)
      if (client.isForgettable(now)) this.#clients.delete(each);
    if (!this.hasNoCooldown) return account;
    if (this.#coolingDownSince >= 0) {
      if (now - this.#coolingDownSince >= SLOW_START_AFTER_MS)
        this.#slowStart.start(now, this.#rateBeforeFailure);
      this.#coolingDownSince = -1;
    }
    return account || !calm;
  }

  /** An operator ends its cooldowns. */
  reset(now: number): void {
    this.credentialCooldown.end(now);
    this.modelCooldown.end(now);
    this.#breaker.recordSuccess(now);
    for (const { concurrencyLimit } of this.#clients.values()) concurrencyLimit?.lift();
    this.#clients.clear();
    this.#slowStart.end();
    this.#connectFailures = 0;
    this.#coolingDownSince = -1;
  }

  /** A probe is over, whatever it has found. */
  releaseProbe(client: string): void {
    this.#breaker.releaseProbe();
    this.#clients.get(client)?.breaker.releaseProbe();
  }

  #evidenceOf(now: number, who: string): ClientEvidence {
    let client = this.#clients.get(who);
    if (client) return client;
    if (this.#clients.size >= MAX_CLIENTS) {
      const [oldest] = this.#clients.keys();
      this.#clients.get(oldest!)!.concurrencyLimit?.lift();
      this.#clients.delete(oldest!);
    }
    client = new ClientEvidence(now);
    this.#clients.set(who, client);
    return client;
  }

  /** It is in cooldown from now on, if it was not before. */
  #beginCooldown(now: number, by: TargetState): TargetState {
    if (this.#coolingDownSince >= 0) return by;
    this.#coolingDownSince = now;
    this.#slowStart.end();
    this.#rateBeforeFailure =
      this.#outcomes.count("good", now) > 0 ? this.#outcomes.callsPerSecond(now) : 0;
    return by;
  }
}
