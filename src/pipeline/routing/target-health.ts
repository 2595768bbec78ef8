// All targets of a process, and what rests of them after a failure: one for the process, read live by each generation.
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

/** A broken promise is not mended in a minute, and each try would break it for one more client. */
const DISTRUST_DURATION_MS = 3_600_000;
const MAX_TRACKED = 10_000;

/** What rests, why, and until when. `model` null: all of the credential's. */
export interface Cooldown {
  provider: string;
  credential: string;
  model: string | null;
  reason: Fault["kind"];
  /** Unix milliseconds. */
  until: number;
}

/** What answers again. */
export type Recovery = Pick<Cooldown, "provider" | "credential" | "model">;

/** Hears of each rest that begins or grows, and of the first answer after it. */
export interface CooldownListener {
  /** `first`: it has answered since it rested last. */
  onCooldown(rest: Cooldown, first: boolean): void;
  onRecovery(what: Recovery): void;
}

/** What has failed and not answered since. A rest that is over by the clock is no recovery yet. */
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
  /** Gateway.yaml says how many there are. */
  readonly #credentialCooldowns = new Map<string, ProviderCooldown>();
  readonly #modelCooldowns = new BoundedMap<string, ProviderCooldown>(MAX_TRACKED);
  /** Credentials that were said to keep nothing, and upstream said otherwise. */
  readonly #distrusted = new Map<string, number>();
  readonly #retryBudgets = new BoundedMap<string, RetryBudget>(MAX_TRACKED);
  readonly #unhealthy = new BoundedMap<string, UnhealthyTarget>(MAX_TRACKED);
  /** A monotonic clock, in milliseconds since the process began, and its timers. */
  readonly clock: TargetClock;
  readonly #listener: CooldownListener;

  constructor(tell: CooldownListener = NO_LISTENER, clock: TargetClock = SYSTEM_CLOCK) {
    this.#listener = tell;
    this.clock = clock;
  }

  get #now(): () => number {
    return this.clock.now;
  }

  /** The same one for each generation that has it. */
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

  /** What its requests may cost beyond one call each. */
  retryBudget(client: string): RetryBudget {
    let budget = this.#retryBudgets.get(client);
    if (!budget) this.#retryBudgets.set(client, (budget = new RetryBudget(this.#now())));
    return budget;
  }

  /** What is in cooldown is decided by the kind of failure; for how long, by the provider or by what has failed before. */
  recordFailure(candidate: HostCandidate, fault: Fault, of: FailureContext): void {
    const { target } = candidate["~"];
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

  /** It has answered what was asked after it had begun to rest: that is over, and so is its credential's rest. */
  recordSuccess(candidate: HostCandidate, started: number, client: string): void {
    const { target } = candidate["~"];
    if (!target.recordSuccess(this.#now(), started, client)) return;
    if (!target.credentialCooldown.isActive) this.#onRecovered(credentialKey(candidate));
    if (target.hasNoCooldown) this.#onRecovered(keyOf(target));
  }

  /** Ends the rests of a provider, or of one of its credentials. A promise that was broken stays broken. */
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

  /** It gets nothing private, not even as the last resort. */
  isDistrusted(candidate: Candidate): boolean {
    return (
      this.#distrusted.size > 0 &&
      (this.#distrusted.get(credentialKey(candidate)) ?? 0) > this.#now()
    );
  }

  /** Why it is tried after the others, if it is. */
  cooldownOf(candidate: HostCandidate, who: string): CandidateCooldown | undefined {
    const rest = this.statusOf(candidate, who);
    return rest && { until: toUnixMs(rest.until), reason: rest.reason };
  }

  /** The same, as it is judged here. */
  statusOf({ "~": { target } }: HostCandidate, who: string): TargetStatus | undefined {
    return target.isHealthy ? undefined : target.statusFor(this.#now(), who);
  }

  /** How good a candidate in cooldown is, compared with others. */
  scoreOf(candidate: HostCandidate, who: string): number {
    const { target } = candidate["~"];
    const state = this.statusOf(candidate, who)?.state;
    return (
      (target.isFull(who) ? 0 : 2) +
      (state === "credential_rejected" || state === "retry_after" ? 0 : 1) +
      target.successRate
    );
  }

  /** Whether a candidate that works again still fails far more often than one in cooldown: that one is called first. */
  isWorseThanAny(
    candidate: HostCandidate,
    inCooldown: readonly HostCandidate[],
    who: string,
  ): boolean {
    if (candidate["~"].target.isHealthy) return false;
    const promise = this.scoreOf(candidate, who) + SCORE_MARGIN;
    return inCooldown.some((one) => this.scoreOf(one, who) > promise);
  }

  /**
   * Candidates in the order in which a request tries them, and those of them that are in cooldown. One that works again but is far worse than
   * one in cooldown comes last, so that it is compared with all of them.
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

  /** How fast what `pick: fastest` leads to is, as it is reckoned now. */
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

  /** For `status`. */
  describeCooldowns(): CooldownStatus[] {
    return this.cooldowns().map(({ provider, credential, model, ...more }) => ({
      target: [provider, credential, ...(model === undefined ? [] : [model])].join(" "),
      ...more,
    }));
  }
}

/** How long one target takes until its first content: of streams, or of whole answers. */
export interface LatencyStatus {
  readonly target: string;
  readonly stream: boolean;
  /** A moving average of what was measured. */
  readonly averageMs: number;
  /** What `fastest` compares: less where it was not asked for long, more where it is silent now. */
  readonly estimateMs: number;
  /** Unix milliseconds. */
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

/** A moment of the monotonic clock, as people read it. */
const toUnixMs = (at: number): number => Math.round(performance.timeOrigin + at);

const credentialKey = ({ provider, credential }: Pick<TargetName, "provider" | "credential">) =>
  `${provider}\n${credential}`;
const modelKey = (of: Pick<TargetName, "provider" | "credential" | "model">): string =>
  `${credentialKey(of)}\n${of.model}`;
const keyOf = ({ name }: UpstreamTarget): string => `${modelKey(name)}\n${name.base}`;
