// What becomes of a hook that fails: it throws what is no refusal, or it takes longer than the operator lets it. Hooks are
// wrapped once per generation; at run time only a hook that returns a promise costs anything.
import { isPromise } from "../../lib/is-promise.ts";
import { createFault, getFault, type Fault } from "../../model/error.ts";
import type { Logger } from "../../plugin/context.ts";
import { HOOK_COMBINATIONS, type Hooks } from "../../plugin/middleware.ts";
import type { TimerEntry, TimerWheel } from "../admission/timer-wheel.ts";
import type { HookBreaker } from "./hook-breaker.ts";
import { startWaitClock, recordHookActivity, recordHookWait } from "./hook-activity.ts";

/** What the operator wrote beside a middleware, and what keeps it. */
export interface HookFailurePolicy {
  /** "middleware.guard" */
  readonly id: string;
  readonly timeoutMs: number;
  readonly onError: "reject" | "continue";
  readonly log: Logger;
  readonly timerWheel: TimerWheel;
  /** How each of its hooks has behaved. */
  readonly breakers: { readonly [hook: string]: HookBreaker | undefined };
}

/** The hooks whose failure may be passed over. */
export const SKIPPABLE_HOOKS = ["edit", "rewrite", "inspect", "route", "attempt", "watch"] as const;

const hostFaults = new WeakSet<Fault>();

/** Marks what something lent by the host threw: a hook that lets it through has failed, and has refused nothing. */
export function markAsHookFailure<P>(problem: P): P {
  const said = getFault(problem);
  if (said) hostFaults.add(said);
  return problem;
}

/** A hook's own word on the request, which stands whatever the operator says of failures. */
export function isDeliberateRejection(problem: unknown): boolean {
  const said = getFault(problem);
  return said !== undefined && said.kind !== "internal" && !hostFaults.has(said);
}

const SKIPPABLE_HOOK_SET: ReadonlySet<string> = new Set(SKIPPABLE_HOOKS);

/** A middleware's, or what a route is read or served by. */
export type GuardedFunction = keyof Hooks | "readInput" | "handle";

const isHook = (asked: GuardedFunction): asked is keyof Hooks => asked in HOOK_COMBINATIONS;

/** It was not asked, and has not failed once more. */
const skippedErrors = new WeakSet<object>();
const invalidResultErrors = new WeakSet<object>();
const timeoutErrors = new WeakSet<object>();

export const isQuarantineError = (problem: unknown): boolean =>
  skippedErrors.has(problem as object);

/** Where a hook is not asked for now, this is thrown in its place. Only what something is known against is looked at. */
export function assertNotQuarantined(
  { breakers }: Pick<HookFailurePolicy, "breakers">,
  hook: string,
): void {
  const conduct = breakers[hook];
  if (conduct && !conduct.isHealthy && !conduct.tryEnter()) throw createQuarantineError(conduct);
}

/** Thrown before a provider is asked for an answer that would have to pass such a hook. */
export function assertFilterAvailable(
  { breakers, onError }: HookFailurePolicy,
  hook: "event" | "watch",
): void {
  if (hook === "watch" && onError === "continue") return;
  const conduct = breakers[hook];
  if (conduct && !conduct.isHealthy && conduct.isBlocked) throw createQuarantineError(conduct);
}

function createQuarantineError(conduct: HookBreaker): Error {
  const refusal = markAsHookFailure(conduct.createError());
  skippedErrors.add(refusal);
  return refusal;
}

/** What a hook gave cannot be used. */
export function invalidResult(why: string): Error {
  const problem = new TypeError(why);
  invalidResultErrors.add(problem);
  return problem;
}

/** It has done its work: a refusal of its own is work too. */
export function recordHookSuccess(
  { breakers }: Pick<HookFailurePolicy, "breakers">,
  hook: string,
): void {
  const conduct = breakers[hook];
  if (conduct && !conduct.isHealthy) conduct.recordSuccess();
}

/** The client that it was asked for. */
const clientOf = (x: unknown): unknown => {
  const { identity, address } = (x ?? {}) as { identity?: { id: string }; address?: string };
  return identity?.id ?? address;
};

/** What it was that a hook threw: for observers, and for how it is seen from now on. */
export function recordHookFailure(
  { id, onError, breakers }: Pick<HookFailurePolicy, "id" | "onError" | "breakers">,
  hook: GuardedFunction,
  x: unknown,
  problem: unknown,
  since = 0,
): void {
  const isSkippable = onError === "continue" && SKIPPABLE_HOOK_SET.has(hook);
  const isRejection = isDeliberateRejection(problem);
  if (isHook(hook))
    recordHookActivity(
      x,
      id,
      hook,
      isRejection ? "refused" : isSkippable ? "skipped" : "failed",
      since,
    );
  if (isRejection) return recordHookSuccess({ breakers }, hook);
  const error = problem as object;
  if (!skippedErrors.has(error)) breakers[hook]?.recordFailure(failureReason(error), clientOf(x));
}

const failureReason = (problem: object): "invalid" | "timeout" | "threw" =>
  invalidResultErrors.has(problem) ? "invalid" : timeoutErrors.has(problem) ? "timeout" : "threw";

/**
 * As the client is told of a failure, by the plugin's name in gateway.yaml and no word of what it threw; the log has that. A fault
 * keeps its own words.
 */
export function toHookFault(
  { id, log }: Pick<HookFailurePolicy, "id" | "log">,
  hook: string,
  problem: unknown,
) {
  if (getFault(problem)) return problem;
  log.error({ plugin: id, hook, err: problem }, "hook failed");
  return createFault("internal", `${id} failed (${hook}). The request id names it in the log.`, {
    code: "plugin_failed",
    details: { plugin: id, hook },
    cause: problem,
  });
}

/** Throws a hook's word; anything else the operator lets pass, and reads of. */
export function skipOrRethrow(
  { id, log }: HookFailurePolicy,
  hook: string,
  problem: unknown,
): void {
  if (isDeliberateRejection(problem)) throw problem;
  // One line tells of the whole quarantine.
  if (skippedErrors.has(problem as object)) return;
  log.warn({ plugin: id, hook, action: "skipped", err: problem }, "hook failed");
}

/** When a hook's time is over, once it is waited for. */
export class HookDeadline implements TimerEntry {
  timerIndex = -1;
  /** Set by the first tick: most hooks are over before it, and reading a clock for each would cost more than they do. */
  #dueAt = -1;
  readonly #policy: HookFailurePolicy;
  readonly #hook: string;
  readonly #onTimeout: (problem: unknown) => void;
  readonly #isWaitingForClient: (() => boolean) | undefined;

  /** `busy`: it waits for the client and not the other way round. */
  constructor(
    of: HookFailurePolicy,
    hook: string,
    cut: (problem: unknown) => void,
    busy: (() => boolean) | undefined,
  ) {
    this.#policy = of;
    this.#hook = hook;
    this.#onTimeout = cut;
    this.#isWaitingForClient = busy;
  }

  start(): void {
    this.#dueAt = -1;
    this.#policy.timerWheel.add(this);
  }
  stop(): void {
    this.#policy.timerWheel.remove(this);
  }
  onTick(now: number): void {
    if (this.#dueAt < 0) this.#dueAt = now + this.#policy.timeoutMs;
    if (now < this.#dueAt) return;
    if (this.#isWaitingForClient?.()) return this.start();
    this.stop();
    this.#onTimeout(createHookTimeout(this.#policy, this.#hook));
  }
}

/** The client is told that it was the gateway's own doing; the operator, which hook it was. */
export function createHookTimeout({ id, timeoutMs, log }: HookFailurePolicy, hook: string): Error {
  log.warn({ plugin: id, hook, timeout_ms: timeoutMs }, "hook timed out");
  const problem = createFault("unavailable", `${id} took too long (${hook}).`, {
    code: "hook_timeout",
    details: { plugin: id, hook },
  });
  timeoutErrors.add(problem);
  return markAsHookFailure(problem);
}

/**
 * What a hook that nothing waits for has said. A promise is no answer: what it would still do comes too late, so the hook has
 * failed, and what becomes of the promise ends no process.
 */
export function requireSyncResult<T>(said: T): T {
  if (said === undefined || !isPromise(said)) return said;
  ignoreRejection(said as Promise<unknown>);
  throw new TypeError("A hook that is not waited for gave a promise. It must do its work at once.");
}

function awaitWithDeadline<T>(
  policy: HookFailurePolicy,
  hook: GuardedFunction,
  x: unknown,
  waiting: Promise<T>,
  options: { instead(problem: unknown): T; busy?: (() => boolean) | undefined },
): Promise<T> {
  const since = startWaitClock(x);
  return new Promise((resolve, reject) => {
    let isDone = false;
    const failed = (problem: unknown) => {
      // It was late, and what it says now is not looked at.
      if (isDone) return;
      isDone = true;
      deadline.stop();
      recordHookFailure(policy, hook, x, problem, since);
      try {
        resolve(options.instead(problem));
      } catch (word) {
        reject(word as Error);
      }
    };
    const deadline = new HookDeadline(policy, hook, failed, options.busy);
    deadline.start();
    waiting.then((result) => {
      if (isDone) return;
      isDone = true;
      deadline.stop();
      if (since && isHook(hook)) recordHookWait(x, policy.id, hook, since);
      recordHookSuccess(policy, hook);
      resolve(result);
    }, failed);
  });
}

/** A hook of two things that may be waited for. `whose`: the exchange that it is about. `instead`: what it would have said if it were not there. */
export function guardHook<A, B, R>(
  policy: HookFailurePolicy,
  hook: GuardedFunction,
  run: (a: A, b: B) => R | Promise<R>,
  options: {
    whose: (a: A, b: B) => unknown;
    instead?: (a: A) => R;
    busy?: (a: A) => boolean;
    /** Throws where it cannot be used. */
    check?: (result: R, a: A) => void;
    /** What it threw is told of elsewhere. */
    raw?: boolean;
  },
): (a: A, b: B) => R | Promise<R> {
  const {
    whose: exchangeOf,
    instead: fallback,
    busy: isWaitingForClient,
    check,
    raw: rethrowsAsIs,
  } = options;
  const refuses = !fallback || policy.onError === "reject";
  const handleFailure = (a: A, problem: unknown): R => {
    if (refuses) throw rethrowsAsIs ? problem : toHookFault(policy, hook, problem);
    skipOrRethrow(policy, hook, problem);
    return fallback(a);
  };
  return (a, b) => {
    let result: R | Promise<R>;
    try {
      assertNotQuarantined(policy, hook);
      result = run(a, b);
      if (!isPromise(result)) {
        check?.(result, a);
        recordHookSuccess(policy, hook);
        return result;
      }
    } catch (problem) {
      recordHookFailure(policy, hook, exchangeOf(a, b), problem);
      return handleFailure(a, problem);
    }
    const checked = check ? result.then((got) => (check(got, a), got)) : result;
    return awaitWithDeadline(policy, hook, exchangeOf(a, b), checked, {
      instead: (problem) => handleFailure(a, problem),
      busy: isWaitingForClient && (() => isWaitingForClient(a)),
    });
  };
}

/** What becomes of it ends no process. */
export function ignoreRejection<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  return asked;
}
