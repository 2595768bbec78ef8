// All targets of a process, and what rests of them after a failure: one for the process, read live by each generation.
import { ERRORS, type Fault } from "../../model/error.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Candidate, CandidateRest } from "../../plugin/call.ts";
import type { RestingReading } from "../../plugin/readings.ts";
import type { HostCandidate } from "../mounted.ts";
import { RetryBudget } from "../targets/retry-budget.ts";
import { Pause } from "../targets/pause.ts";
import type { TargetClock } from "../targets/client-evidence.ts";
import { FAR, type CallFacts, type TargetName, type TargetRest } from "../targets/target-rest.ts";
import { UpstreamTarget } from "../targets/upstream-target.ts";

/** A broken promise is not mended in a minute, and each try would break it for one more client. */
const DISTRUST_MS = 3_600_000;
const MOST = 10_000;

/** What rests, why, and until when. `model` null: all of the credential's. */
export interface Rest {
  provider: string;
  credential: string;
  model: string | null;
  kind: Fault["kind"];
  /** Unix milliseconds. */
  until: number;
}

/** What answers again. */
export type Recovery = Pick<Rest, "provider" | "credential" | "model">;

/** Hears of each rest that begins or grows, and of the first answer after it. */
export interface RestListener {
  /** `first`: it has answered since it rested last. */
  rests(rest: Rest, first: boolean): void;
  recovered(what: Recovery): void;
}

/** What has failed and not answered since. A rest that is over by the clock is no recovery yet. */
interface Ailment {
  readonly what: Recovery;
  readonly target: UpstreamTarget;
}

const CLOCK: TargetClock = {
  now: () => performance.now(),
  later: (ms, run) => void setTimeout(run, ms).unref(),
};

const SILENT: RestListener = { rests() {}, recovered() {} };

export class RestingTargets {
  readonly #targets = new BoundedMap<string, UpstreamTarget>(MOST);
  /** Gateway.yaml says how many there are. */
  readonly #accounts = new Map<string, Pause>();
  readonly #limits = new BoundedMap<string, Pause>(MOST);
  /** Credentials that were said to keep nothing, and upstream said otherwise. */
  readonly #distrusted = new Map<string, number>();
  readonly #budgets = new BoundedMap<string, RetryBudget>(MOST);
  readonly #ailing = new BoundedMap<string, Ailment>(MOST);
  /** A monotonic clock, in milliseconds since the process began, and its timers. */
  readonly clock: TargetClock;
  readonly #tell: RestListener;

  constructor(tell: RestListener = SILENT, clock: TargetClock = CLOCK) {
    this.#tell = tell;
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
    const account = this.#accounts.get(credentialKey(name)) ?? new Pause();
    this.#accounts.set(credentialKey(name), account);
    const limit = this.#limits.get(modelKey(name)) ?? new Pause();
    this.#limits.set(modelKey(name), limit);
    target = new UpstreamTarget(name, account, limit, this.clock);
    this.#targets.set(key, target);
    return target;
  }

  /** What its requests may cost beyond one call each. */
  budget(who: string): RetryBudget {
    let budget = this.#budgets.get(who);
    if (!budget) this.#budgets.set(who, (budget = new RetryBudget(this.#now())));
    return budget;
  }

  /** What is in cooldown is decided by the kind of failure; for how long, by the provider or by what has failed before. */
  failed(candidate: HostCandidate, fault: Fault, of: CallFacts): void {
    const { target } = candidate["~"];
    const rests = ERRORS[fault.kind][2];
    if (!rests) return target.well ? undefined : target.there(of.started);
    const now = this.#now();
    if (fault.kind === "attestation")
      this.#distrusted.set(credentialKey(candidate), now + DISTRUST_MS);
    const state = target.failed(now, fault, rests, of);
    if (!state) return undefined;
    const whole = state === "refused";
    const key = whole ? credentialKey(candidate) : keyOf(target);
    const { provider, credential, model } = target.name;
    const what = { provider, credential, model: whole ? null : model };
    const first = !this.#ailing.get(key);
    this.#ailing.set(key, { what, target });
    const until = wall((whole ? target.account : (target.state(now) ?? target.limit)).until);
    return this.#tell.rests({ ...what, kind: fault.kind, until }, first);
  }

  /** It has answered what was asked after it had begun to rest: that is over, and so is its credential's rest. */
  answered(candidate: HostCandidate, started: number, who: string): void {
    const { target } = candidate["~"];
    if (!target.answered(this.#now(), started, who)) return;
    if (!target.account.active) this.#recovered(credentialKey(candidate));
    if (target.calm) this.#recovered(keyOf(target));
  }

  /** Ends the rests of a provider, or of one of its credentials. A promise that was broken stays broken. */
  wake(provider: string, credential: string | undefined): void {
    const now = this.#now();
    for (const target of this.#targets.values()) {
      const { name } = target;
      if (name.provider !== provider || (credential ?? name.credential) !== name.credential)
        continue;
      target.wake(now);
      this.#recovered(credentialKey(name));
      this.#recovered(keyOf(target));
    }
  }

  #recovered(key: string): void {
    const ailment = this.#ailing.get(key);
    if (!ailment) return;
    this.#ailing.delete(key);
    this.#tell.recovered(ailment.what);
  }

  /** It gets nothing private, not even as the last resort. */
  distrusted(candidate: Candidate): boolean {
    return (
      this.#distrusted.size > 0 &&
      (this.#distrusted.get(credentialKey(candidate)) ?? 0) > this.#now()
    );
  }

  /** Why it is tried after the others, if it is. */
  resting(candidate: HostCandidate, who: string): CandidateRest | undefined {
    const rest = this.rest(candidate, who);
    return rest && { until: wall(rest.until), why: rest.why };
  }

  /** The same, as it is judged here. */
  rest({ "~": { target } }: HostCandidate, who: string): TargetRest | undefined {
    return target.well ? undefined : target.rest(this.#now(), who);
  }

  /** How good a candidate in cooldown is, compared with others. */
  promise(candidate: HostCandidate, who: string): number {
    const { target } = candidate["~"];
    const state = this.rest(candidate, who)?.state;
    return (
      (target.full(who) ? 0 : 2) + (state === "refused" || state === "told" ? 0 : 1) + target.score
    );
  }

  /** Whether a candidate that works again still fails far more often than one in cooldown: that one is called first. */
  isWorse(candidate: HostCandidate, inCooldown: readonly HostCandidate[], who: string): boolean {
    if (candidate["~"].target.well) return false;
    const promise = this.promise(candidate, who) + FAR;
    return inCooldown.some((one) => this.promise(one, who) > promise);
  }

  /**
   * Candidates in the order in which a request tries them, and those of them that are in cooldown. One that works again but is far worse than
   * one in cooldown comes last, so that it is compared with all of them.
   */
  inOrder(
    chosen: readonly HostCandidate[],
    who: string,
  ): { candidates: readonly HostCandidate[]; rested: readonly HostCandidate[] } {
    const rested = chosen.filter((candidate) => this.rest(candidate, who));
    if (rested.length === 0) return { candidates: chosen, rested };
    const others = chosen.filter((one) => !rested.includes(one));
    const worse = others.filter((one) => this.isWorse(one, rested, who));
    const first = others.filter((one) => !worse.includes(one));
    return { candidates: [...first, ...rested, ...worse], rested };
  }

  all(): RestingReading[] {
    const now = this.#now();
    return this.#ailing.values().flatMap(({ what: { model, ...of }, target }) => {
      const said = model === null ? ofAccount(target, now) : target.state(now);
      if (!said) return [];
      const { state, why, until, refuses, keys } = said;
      const what = { ...of, ...(model !== null && { model }) };
      const rest = { ...what, state, why, until: wall(until), refuses, score: target.score };
      return [keys ? { ...rest, keys } : rest];
    });
  }

  /** How fast what `pick: fastest` leads to is, as it is reckoned now. */
  speeds(): SpeedStatus[] {
    const now = this.#now();
    return this.#targets.values().flatMap((target) => {
      if (target.untimed) return [];
      const { provider, credential, model } = target.name;
      const what = `${provider} ${credential} ${model}`;
      return [true, false].flatMap((stream) => {
        const latency = target.timed(stream);
        if (latency.ms === undefined) return [];
        return {
          what,
          stream,
          contentMs: Math.round(latency.ms),
          reckonedMs: Math.round(latency.reckoned(now)),
          askedAt: wall(latency.asked),
        };
      });
    });
  }

  /** For `status`. */
  list(): RestingStatus[] {
    return this.all().map(({ provider, credential, model, ...more }) => ({
      what: [provider, credential, ...(model === undefined ? [] : [model])].join(" "),
      ...more,
    }));
  }
}

/** How long one target takes until its first content: of streams, or of whole answers. */
export interface SpeedStatus {
  readonly what: string;
  readonly stream: boolean;
  /** A moving average of what was measured. */
  readonly contentMs: number;
  /** What `fastest` compares: less where it was not asked for long, more where it is silent now. */
  readonly reckonedMs: number;
  /** Unix milliseconds. */
  readonly askedAt: number;
}

interface RestingStatus extends Omit<RestingReading, "provider" | "credential" | "model"> {
  readonly what: string;
}

const ofAccount = ({ account }: UpstreamTarget, now: number): TargetRest | undefined =>
  account.rests(now)
    ? { state: "refused", why: account.why, until: account.until, refuses: false }
    : undefined;

/** A moment of the monotonic clock, as people read it. */
const wall = (at: number): number => Math.round(performance.timeOrigin + at);

const credentialKey = ({ provider, credential }: Pick<TargetName, "provider" | "credential">) =>
  `${provider}\n${credential}`;
const modelKey = (of: Pick<TargetName, "provider" | "credential" | "model">): string =>
  `${credentialKey(of)}\n${of.model}`;
const keyOf = ({ name }: UpstreamTarget): string => `${modelKey(name)}\n${name.base}`;
