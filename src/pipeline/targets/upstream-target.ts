// The health of one target: a provider's model, at one address, with one credential. It determines
// which targets are tried after the others (cooldown), and when no call is made (a `retry-after`
// for the whole account). It also estimates the probability that a call succeeds. It is kept across
// config generations and reads no clock: every `now` is on the monotonic clock, in milliseconds.
import type { ErrorKind, Fault } from "../../model/error.ts";
import { CircuitBreaker, OutcomeWindow } from "./circuit-breaker.ts";
import {
  ClientEvidence,
  MIN_FAILURES,
  MIN_SAMPLES,
  MAX_FAILURE_SHARE,
  type TargetClock,
} from "./client-evidence.ts";
import { type ConcurrencySlot, SlowStart } from "./concurrency-limit.ts";
import { Latency } from "./latency.ts";
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

/**
 * Length of a cooldown in milliseconds after which a recovering target does not receive all
 * requests immediately.
 */
const SLOW_START_AFTER_MS = 5_000;
/** Cooldown in milliseconds after a rejected credential, which an operator must fix. */
const REJECTED_CREDENTIAL_MS = 60_000;
/** Number of consecutive connection failures after which the breaker opens. */
const MAX_CONNECT_FAILURES = 3;
/** Weight of the newest result in the success rate. */
const SMOOTHING = 0.05;
/** Maximum number of tracked clients. Above this number, the oldest client is dropped. */
const MAX_CLIENTS = 256;

export class UpstreamTarget {
  readonly name: TargetName;
  /** Cooldown of the credential, for all models. */
  readonly credentialCooldown: ProviderCooldown;
  /** Cooldown of the credential for this model. */
  readonly modelCooldown: ProviderCooldown;
  readonly #clock: TargetClock;
  readonly #outcomes = new OutcomeWindow();
  /** Opened by failures of several clients together, or if there is no connection. */
  readonly #breaker = new CircuitBreaker();
  /** Evidence of clients that have recently seen failures. */
  readonly #clients = new Map<string, ClientEvidence>();
  readonly #slowStart = new SlowStart();
  #lastReason: ErrorKind = "overloaded";
  #connectFailures = 0;
  #successRate = 1;
  /** Calls per second before the failure. 0 if unknown. */
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

  /** Returns the latency estimate for streaming or non-streaming responses. */
  latencyOf(stream: boolean): Latency {
    this.#latencies ??= [new Latency(), new Latency()];
    return this.#latencies[stream ? 1 : 0];
  }

  /** Whether the latency is not measured. */
  get isUnmeasured(): boolean {
    return this.#latencies === undefined;
  }

  /** Whether no failure is known. While a target works, nothing else is checked. */
  get isHealthy(): boolean {
    return (
      !this.credentialCooldown.isActive &&
      !this.modelCooldown.isActive &&
      this.#breaker.isClosed &&
      this.#clients.size === 0 &&
      !this.#slowStart.isActive
    );
  }

  /** Whether the target itself is in no cooldown, for any client. */
  get hasNoCooldown(): boolean {
    if (this.modelCooldown.isActive || !this.#breaker.isClosed) return false;
    for (const { breaker } of this.#clients.values()) if (!breaker.isClosed) return false;
    return true;
  }

  /**
   * Share of recent calls that succeeded. Decides which of several targets in cooldown is tried
   * first.
   */
  get successRate(): number {
    return this.#successRate;
  }

  /**
   * Returns the reason why this client's requests are sent to other candidates first. If there are
   * several reasons, returns the strongest. Returns undefined if there is none.
   */
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

  /**
   * Returns the state for `status`, without the state of the credential. Returns undefined if no
   * failure is known.
   */
  overallStatus(now: number): TargetStatus | undefined {
    const why = this.#lastReason;
    const shared = stronger(
      this.#modelCooldownStatus(now),
      this.#breakerStatus(this.#breaker, now),
    );
    // A half-open breaker must not hide the breakers of single clients.
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

  /**
   * Returns how the target may be called now at its position in the order, or undefined if it may
   * not be called. Each breaker allows one probe at a time.
   */
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

  /** Records a call that is made although the target recovers. */
  recordForcedCall(now: number): void {
    this.#slowStart.forceTake(now);
  }

  /** Whether a further call of this client is likely to succeed here. */
  isLikelyToSucceed(now: number, client: string): boolean {
    return this.#breaker.isClosed && (this.#clients.get(client)?.isLikelyToSucceed(now) ?? true);
  }

  /** Whether a request of this client would have to wait. */
  isFull(client: string): boolean {
    return this.#clients.get(client)?.concurrencyLimit?.isFull ?? false;
  }

  /** Returns a concurrency slot for this client, or undefined if its calls are not limited. */
  acquireSlot(
    client: string,
    waitMs: number,
  ): ConcurrencySlot | Promise<ConcurrencySlot> | undefined {
    const { provider, model } = this.name;
    return this.#clients.get(client)?.concurrencyLimit?.acquire(waitMs, `${provider}/${model}`);
  }

  /** Records a failure. Returns the state whose cooldown begins or grows because of it. */
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
    // If a request is too large for a limit, other requests may still be accepted.
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

  /**
   * Whether the breaker opens for all clients, which depends on the failures of all clients except
   * the client with the most failures.
   */
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

  /**
   * Records that the provider rejected a request as invalid, which shows that it works. `started`:
   * when the call started.
   */
  recordReachable(started: number): void {
    this.#connectFailures = 0;
    this.#breaker.recordSuccess(started);
  }

  /** Records a success. Returns whether a cooldown ends because of it. */
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

  /** Ends all cooldowns at an operator's request. */
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

  /** Ends a probe, with or without a result. */
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

  /** Records the start of a cooldown, unless the target is already in one. */
  #beginCooldown(now: number, by: TargetState): TargetState {
    if (this.#coolingDownSince >= 0) return by;
    this.#coolingDownSince = now;
    this.#slowStart.end();
    this.#rateBeforeFailure =
      this.#outcomes.count("good", now) > 0 ? this.#outcomes.callsPerSecond(now) : 0;
    return by;
  }
}
