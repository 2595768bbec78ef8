// Handles failures of hooks. A hook fails if it throws anything except a rejection, or if it
// exceeds its timeout. Hooks are wrapped once per config generation. At run time, only a hook that
// returns a promise has a cost.
import { isPromise } from "../../lib/is-promise.ts";
import { createFault, getFault, type Fault } from "../../model/error.ts";
import type { Logger } from "../../plugin/context.ts";
import { HOOK_COMBINATIONS, type Hooks } from "../../plugin/middleware.ts";
import type { TimerEntry, TimerWheel } from "../admission/timer-wheel.ts";
import type { HookBreaker } from "./hook-breaker.ts";
import { startWaitClock, recordHookActivity, recordHookWait } from "./hook-activity.ts";

/** The failure settings of one middleware, and the objects that enforce them. */
export interface HookFailurePolicy {
  /** Plugin ID, such as "middleware.guard". */
  readonly id: string;
  readonly timeoutMs: number;
  readonly onError: "reject" | "continue";
  readonly log: Logger;
  readonly timerWheel: TimerWheel;
  /** The circuit breaker of each hook. */
  readonly breakers: { readonly [hook: string]: HookBreaker | undefined };
}

/** Hooks whose failure may be skipped under `on_error: continue`. */
export const SKIPPABLE_HOOKS = ["edit", "rewrite", "inspect", "route", "attempt", "watch"] as const;

const hostFaults = new WeakSet<Fault>();

/**
 * Marks an error from a function that the host lent to a hook. A hook that lets this error through
 * has failed. It has not rejected the request.
 */
export function markAsHookFailure<P>(problem: P): P {
  const said = getFault(problem);
  if (said) hostFaults.add(said);
  return problem;
}

/**
 * Whether the error is the hook's own rejection of the request. A rejection takes effect regardless
 * of `on_error`.
 */
export function isDeliberateRejection(problem: unknown): boolean {
  const said = getFault(problem);
  return said !== undefined && said.kind !== "internal" && !hostFaults.has(said);
}

const SKIPPABLE_HOOK_SET: ReadonlySet<string> = new Set(SKIPPABLE_HOOKS);

/**
 * A function with failure handling: a hook of a middleware, or the function with which a route
 * reads or serves a request.
 */
export type GuardedFunction = keyof Hooks | "readInput" | "handle";

const isHook = (asked: GuardedFunction): asked is keyof Hooks => asked in HOOK_COMBINATIONS;

/** Errors thrown because a hook was in quarantine. They do not count as another failure. */
const skippedErrors = new WeakSet<object>();
const invalidResultErrors = new WeakSet<object>();
const timeoutErrors = new WeakSet<object>();

export const isQuarantineError = (problem: unknown): boolean =>
  skippedErrors.has(problem as object);

/**
 * Throws if the hook is in quarantine. The breaker is checked only if it has recorded a failure.
 */
export function assertNotQuarantined(
  { breakers }: Pick<HookFailurePolicy, "breakers">,
  hook: string,
): void {
  const conduct = breakers[hook];
  if (conduct && !conduct.isHealthy && !conduct.tryEnter()) throw createQuarantineError(conduct);
}

/**
 * Throws if an event or watch hook that the response must pass is in quarantine. Called before the
 * provider is called.
 */
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

/** Creates the error for an unusable result of a hook. */
export function invalidResult(why: string): Error {
  const problem = new TypeError(why);
  invalidResultErrors.add(problem);
  return problem;
}

/** Records that the hook worked. Rejecting a request counts as success. */
export function recordHookSuccess(
  { breakers }: Pick<HookFailurePolicy, "breakers">,
  hook: string,
): void {
  const conduct = breakers[hook];
  if (conduct && !conduct.isHealthy) conduct.recordSuccess();
}

/** Returns the client whose request the hook handled. */
const clientOf = (x: unknown): unknown => {
  const { identity, address } = (x ?? {}) as { identity?: { id: string }; address?: string };
  return identity?.id ?? address;
};

/** Records an error that a hook threw, for observers and for its circuit breaker. */
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
 * Converts a hook's failure to the error for the client. It names the plugin as in gateway.yaml,
 * but contains nothing of the thrown error, which is only in the log. A fault is returned
 * unchanged.
 */
export function toHookFault(
  { id, log }: Pick<HookFailurePolicy, "id" | "log">,
  hook: string,
  problem: unknown,
) {
  if (getFault(problem)) return problem;
  log.error({ plugin: id, hook, err: problem }, "hook failed");
  return createFault(
    "internal",
    `${id} failed (${hook}). See the gateway log for this request ID.`,
    {
      code: "plugin_failed",
      details: { plugin: id, hook },
      cause: problem,
    },
  );
}

/** Rethrows a deliberate rejection. Any other failure is skipped and logged for the operator. */
export function skipOrRethrow(
  { id, log }: HookFailurePolicy,
  hook: string,
  problem: unknown,
): void {
  if (isDeliberateRejection(problem)) throw problem;
  // The start of the quarantine is logged once, so skipped calls are not.
  if (skippedErrors.has(problem as object)) return;
  log.warn({ plugin: id, hook, action: "skipped", err: problem }, "hook failed");
}

/** The deadline of one asynchronous hook. */
export class HookDeadline implements TimerEntry {
  timerIndex = -1;
  /**
   * Set by the first tick. Most hooks finish before it, and reading a clock for each would cost
   * more than they do.
   */
  #dueAt = -1;
  readonly #policy: HookFailurePolicy;
  readonly #hook: string;
  readonly #onTimeout: (problem: unknown) => void;
  readonly #isWaitingForClient: (() => boolean) | undefined;

  /** `busy`: whether the hook waits for the client. The deadline is then extended. */
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

/** Creates the timeout error. It names the hook, and the timeout is logged for the operator. */
export function createHookTimeout({ id, timeoutMs, log }: HookFailurePolicy, hook: string): Error {
  log.warn({ plugin: id, hook, timeout_ms: timeoutMs }, "hook timed out");
  const problem = createFault("unavailable", `${id} exceeded its time limit (${hook}).`, {
    code: "hook_timeout",
    details: { plugin: id, hook },
  });
  timeoutErrors.add(problem);
  return markAsHookFailure(problem);
}

/**
 * Returns the result of a synchronous hook. Throws if the result is a promise: its effect would
 * come too late, so the hook has failed. A rejection of that promise does not crash the process.
 */
export function requireSyncResult<T>(said: T): T {
  if (said === undefined || !isPromise(said)) return said;
  ignoreRejection(said as Promise<unknown>);
  throw new TypeError(
    "A synchronous hook returned a promise. It must finish its work before it returns.",
  );
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
      // After the timeout, the hook's result or error is ignored.
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

/**
 * Wraps a hook of two arguments that may return a promise. `whose`: returns the exchange.
 * `instead`: returns the result that is used if the hook's failure is skipped.
 */
export function guardHook<A, B, R>(
  policy: HookFailurePolicy,
  hook: GuardedFunction,
  run: (a: A, b: B) => R | Promise<R>,
  options: {
    whose: (a: A, b: B) => unknown;
    instead?: (a: A) => R;
    busy?: (a: A) => boolean;
    /** Throws if the result is unusable. */
    check?: (result: R, a: A) => void;
    /** Whether the error is rethrown unchanged, because it is reported elsewhere. */
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

/** Prevents a rejection of the promise from crashing the process. */
export function ignoreRejection<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  return asked;
}
