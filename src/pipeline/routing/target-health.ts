// All targets of a process and their cooldowns. There is one instance per process, which all config
// generations share.
import { ERRORS, type Fault } from "../../model/error.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Candidate, CandidateCooldown } from "../../plugin/call.ts";
import type { CooldownState } from "../../plugin/gateway-stats.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { RetryBudget } from "../targets/retry-budget.ts";
import { ProviderCooldown } from "../targets/provider-cooldown.ts";
import type { TargetClock } from "../targets/client-evidence.ts";
import {
  SCORE_MARGIN,
  type FailureContext,
  type TargetName,
  type TargetStatus,
} from "../targets/target-status.ts";
import { UpstreamTarget } from "../targets/upstream-target.ts";

/**
 * Duration for which a broken data policy promise is stored, in milliseconds. Providers do not fix
 * such a problem within a minute, and each attempt would break the promise for another client.
 */
const DISTRUST_DURATION_MS = 3_600_000;
const MAX_TRACKED = 10_000;

/**
 * A cooldown: its scope, reason, and end. `model` is null if it applies to the whole credential.
 */
export interface Cooldown {
  provider: string;
  credential: string;
  model: string | null;
  reason: Fault["kind"];
  /** Unix timestamp in milliseconds. */
  until: number;
}

/** The scope of a cooldown that ended. */
export type Recovery = Pick<Cooldown, "provider" | "credential" | "model">;

/** Called when a cooldown begins or is extended, and on the first success after it. */
export interface CooldownListener {
  /** `first`: whether a call has succeeded since the previous cooldown. */
  onCooldown(rest: Cooldown, first: boolean): void;
  onRecovery(what: Recovery): void;
}

/**
 * A target that has failed and not succeeded since. A cooldown that has expired is not a recovery.
 */
interface UnhealthyTarget {
  readonly scope: Recovery;
  readonly target: UpstreamTarget;
}

const SYSTEM_CLOCK: TargetClock = {
  now: () => performance.now(),
  schedule: (ms, run) => void setTimeout(run, ms).unref(),
};

const NO_LISTENER: CooldownListener = { onCooldown() {}, onRecovery() {} };

export class TargetHealth {
  readonly #targets = new BoundedMap<string, UpstreamTarget>(MAX_TRACKED);
  /** Not bounded, because gateway.yaml limits the number of credentials. */
  readonly #credentialCooldowns = new Map<string, ProviderCooldown>();
  readonly #modelCooldowns = new BoundedMap<string, ProviderCooldown>(MAX_TRACKED);
  /**
   * Credentials with declared zero retention, for which a provider's response contradicted the
   * declaration. The value is the end of the distrust.
   */
  readonly #distrusted = new Map<string, number>();
  readonly #retryBudgets = new BoundedMap<string, RetryBudget>(MAX_TRACKED);
  readonly #unhealthy = new BoundedMap<string, UnhealthyTarget>(MAX_TRACKED);
  /** Monotonic clock in milliseconds since the process started, with its timers. */
  readonly clock: TargetClock;
  readonly #listener: CooldownListener;

  constructor(tell: CooldownListener = NO_LISTENER, clock: TargetClock = SYSTEM_CLOCK) {
    this.#listener = tell;
    this.clock = clock;
  }

  get #now(): () => number {
    return this.clock.now;
  }

  /** Returns the target with this name. All config generations share it. */
  target(name: TargetName): UpstreamTarget {
    const key = `${modelKey(name)}\n${name.base}`;
    let target = this.#targets.get(key);
    if (target) return target;
    const account = this.#credentialCooldowns.get(credentialKey(name)) ?? new ProviderCooldown();
    this.#credentialCooldowns.set(credentialKey(name), account);
    const limit = this.#modelCooldowns.get(modelKey(name)) ?? new ProviderCooldown();
    this.#modelCooldowns.set(modelKey(name), limit);
    target = new UpstreamTarget(name, account, limit, this.clock);
    this.#targets.set(key, target);
    return target;
  }

  /**
   * Returns the retry budget of a client: the number of calls that its requests may make in
   * addition to one each.
   */
  retryBudget(client: string): RetryBudget {
    let budget = this.#retryBudgets.get(client);
    if (!budget) this.#retryBudgets.set(client, (budget = new RetryBudget(this.#now())));
    return budget;
  }

  /**
   * Records a failure. The error kind determines the scope of the cooldown. The provider or
   * previous failures determine its length.
   */
  recordFailure(candidate: HostCandidate, fault: Fault, of: FailureContext): void {
    const { target } = candidate.mounted;
    const cooldownScope = ERRORS[fault.kind][2];
    if (!cooldownScope) return target.isHealthy ? undefined : target.recordReachable(of.startedAt);
    const now = this.#now();
    if (fault.kind === "attestation")
      this.#distrusted.set(credentialKey(candidate), now + DISTRUST_DURATION_MS);
    const state = target.recordFailure(now, fault, cooldownScope, of);
    if (!state) return undefined;
    const isWholeCredential = state === "credential_rejected";
    const key = isWholeCredential ? credentialKey(candidate) : keyOf(target);
    const { provider, credential, model } = target.name;
    const what = { provider, credential, model: isWholeCredential ? null : model };
    const first = !this.#unhealthy.get(key);
    this.#unhealthy.set(key, { scope: what, target });
    const until = toUnixMs(
      (isWholeCredential
        ? target.credentialCooldown
        : (target.overallStatus(now) ?? target.modelCooldown)
      ).until,
    );
    return this.#listener.onCooldown({ ...what, reason: fault.kind, until }, first);
  }

  /**
   * Records a success. If the call started after a cooldown began, the cooldowns of the target and
   * of its credential end.
   */
  recordSuccess(candidate: HostCandidate, started: number, client: string): void {
    const { target } = candidate.mounted;
    if (!target.recordSuccess(this.#now(), started, client)) return;
    if (!target.credentialCooldown.isActive) this.#onRecovered(credentialKey(candidate));
    if (target.hasNoCooldown) this.#onRecovered(keyOf(target));
  }

  /**
   * Ends the cooldowns of a provider, or of one of its credentials. Distrust after a broken data
   * policy promise remains.
   */
  reset(provider: string, credential: string | undefined): void {
    const now = this.#now();
    for (const target of this.#targets.values()) {
      const { name } = target;
      if (name.provider !== provider || (credential ?? name.credential) !== name.credential)
        continue;
      target.reset(now);
      this.#onRecovered(credentialKey(name));
      this.#onRecovered(keyOf(target));
    }
  }

  #onRecovered(key: string): void {
    const ailment = this.#unhealthy.get(key);
    if (!ailment) return;
    this.#unhealthy.delete(key);
    this.#listener.onRecovery(ailment.scope);
  }

  /**
   * Whether the credential broke its data policy promise. It receives no private request, not even
   * as the last resort.
   */
  isDistrusted(candidate: Candidate): boolean {
    return (
      this.#distrusted.size > 0 &&
      (this.#distrusted.get(credentialKey(candidate)) ?? 0) > this.#now()
    );
  }

  /** Returns the candidate's cooldown as plugins see it, or undefined. */
  cooldownOf(candidate: HostCandidate, who: string): CandidateCooldown | undefined {
    const rest = this.statusOf(candidate, who);
    return rest && { until: toUnixMs(rest.until), reason: rest.reason };
  }

  /** Returns the candidate's cooldown with its internal state, or undefined. */
  statusOf({ mounted: { target } }: HostCandidate, who: string): TargetStatus | undefined {
    return target.isHealthy ? undefined : target.statusFor(this.#now(), who);
  }

  /** Returns the score of a candidate in cooldown, for comparison with others. */
  scoreOf(candidate: HostCandidate, who: string): number {
    const { target } = candidate.mounted;
    const state = this.statusOf(candidate, who)?.state;
    return (
      (target.isFull(who) ? 0 : 2) +
      (state === "credential_rejected" || state === "retry_after" ? 0 : 1) +
      target.successRate
    );
  }

  /**
   * Whether a recovered candidate still fails much more often than a candidate in cooldown. The
   * candidate in cooldown is then called first.
   */
  isWorseThanAny(
    candidate: HostCandidate,
    inCooldown: readonly HostCandidate[],
    who: string,
  ): boolean {
    if (candidate.mounted.target.isHealthy) return false;
    const promise = this.scoreOf(candidate, who) + SCORE_MARGIN;
    return inCooldown.some((one) => this.scoreOf(one, who) > promise);
  }

  /**
   * Orders candidates for a request, and returns those in cooldown. A recovered candidate that is
   * much worse than a candidate in cooldown is last, so that it is compared with all candidates.
   */
  inOrder(
    chosen: readonly HostCandidate[],
    who: string,
  ): { candidates: readonly HostCandidate[]; rested: readonly HostCandidate[] } {
    const rested = chosen.filter((candidate) => this.statusOf(candidate, who));
    if (rested.length === 0) return { candidates: chosen, rested };
    const others = chosen.filter((one) => !rested.includes(one));
    const worse = others.filter((one) => this.isWorseThanAny(one, rested, who));
    const first = others.filter((one) => !worse.includes(one));
    return { candidates: [...first, ...rested, ...worse], rested };
  }

  cooldowns(): CooldownState[] {
    const now = this.#now();
    return this.#unhealthy.values().flatMap(({ scope: { model, ...of }, target }) => {
      const status = model === null ? credentialStatusOf(target, now) : target.overallStatus(now);
      if (!status) return [];
      const { state, reason, until, rejectsRequests, keys } = status;
      const what = { ...of, ...(model !== null && { model }) };
      const rest = {
        ...what,
        state,
        reason,
        until: toUnixMs(until),
        rejectsRequests,
        score: target.successRate,
      };
      return [keys ? { ...rest, keys } : rest];
    });
  }

  /** Returns the current latency estimates of targets that `pick: fastest` uses. */
  latencies(): LatencyStatus[] {
    const now = this.#now();
    return this.#targets.values().flatMap((target) => {
      if (target.isUnmeasured) return [];
      const { provider, credential, model } = target.name;
      const what = `${provider} ${credential} ${model}`;
      return [true, false].flatMap((stream) => {
        const latency = target.latencyOf(stream);
        if (latency.averageMs === undefined) return [];
        return {
          target: what,
          stream,
          averageMs: Math.round(latency.averageMs),
          estimateMs: Math.round(latency.estimateMs(now)),
          calledAt: toUnixMs(latency.calledAt),
        };
      });
    });
  }

  /** Returns the current cooldowns, for `status`. */
  describeCooldowns(): CooldownStatus[] {
    return this.cooldowns().map(({ provider, credential, model, ...more }) => ({
      target: [provider, credential, ...(model === undefined ? [] : [model])].join(" "),
      ...more,
    }));
  }
}

/** The time to first token of one target, for streaming or non-streaming responses. */
export interface LatencyStatus {
  readonly target: string;
  readonly stream: boolean;
  /** Moving average of the measurements. */
  readonly averageMs: number;
  /**
   * The estimate that `fastest` compares. The estimate decreases if the target was not called for a
   * long time, and increases while a call is waiting.
   */
  readonly estimateMs: number;
  /** Unix timestamp in milliseconds. */
  readonly calledAt: number;
}

interface CooldownStatus extends Omit<CooldownState, "provider" | "credential" | "model"> {
  readonly target: string;
}

const credentialStatusOf = (
  { credentialCooldown }: UpstreamTarget,
  now: number,
): TargetStatus | undefined =>
  credentialCooldown.isCoolingDown(now)
    ? {
        state: "credential_rejected",
        reason: credentialCooldown.reason,
        until: credentialCooldown.until,
        rejectsRequests: false,
      }
    : undefined;

/** Converts a time of the monotonic clock to a Unix timestamp in milliseconds. */
const toUnixMs = (at: number): number => Math.round(performance.timeOrigin + at);

const credentialKey = ({ provider, credential }: Pick<TargetName, "provider" | "credential">) =>
  `${provider}\n${credential}`;
const modelKey = (of: Pick<TargetName, "provider" | "credential" | "model">): string =>
  `${credentialKey(of)}\n${of.model}`;
const keyOf = ({ name }: UpstreamTarget): string => `${modelKey(name)}\n${name.base}`;
