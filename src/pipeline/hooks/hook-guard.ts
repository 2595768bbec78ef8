// Runs a plugin's code for a request: a hook, or the function with which a route reads or serves a
// request. No other code runs plugins for a request. The guard limits the run time, quarantines
// code that fails repeatedly, attributes each failure to its plugin, and records the effects of the
// hook for observers. A hook fails if it throws anything except a rejection, returns an unusable
// value, or exceeds its timeout. Hooks are wrapped once per config generation. At run time, only
// hooks that return a promise add a cost.
import { isPromise } from "../../lib/is-promise.ts";
import { createFault, getFault, type Fault } from "../../model/error.ts";
import type { Logger } from "../../plugin/context.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import { HOOK_COMBINATIONS, type Hooks } from "../../plugin/middleware.ts";
import type { RequestRecordHook } from "../../plugin/observer.ts";
import type { TimerEntry, TimerWheel } from "../admission/timer-wheel.ts";
import type { HookBreaker } from "./hook-breaker.ts";

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
const SKIPPABLE_HOOK_SET: ReadonlySet<string> = new Set(SKIPPABLE_HOOKS);

/** Code with failure handling: a hook of a middleware, or a function of a route. */
export type GuardedFunction = keyof Hooks | "readInput" | "readModel" | "handle";

const isHook = (name: GuardedFunction): name is keyof Hooks => name in HOOK_COMBINATIONS;

/**
 * An exchange as the pipeline passes it to hooks. Only the exchange of a client's request has a
 * state.
 */
export type HookedExchange = LiveExchange | HypotheticalExchange;

/** The exchange of a request. */
export type LiveExchange = Exchange & {
  readonly isHypothetical: false;
  /**
   * Whether the client is still sending the body. A hook that reads the body waits for the client,
   * and that time does not count against the hook.
   */
  readonly isAwaitingBody: boolean;
  readonly state: {
    readonly gen: { readonly reportRequest: unknown };
    readonly frontend: {
      validate(body: unknown): { pointer: string; message: string } | undefined;
    };
    readonly outcome: { hookActivity: RequestRecordHook[] | undefined };
  };
};

/** The exchange of `tollgate explain`, which no client sent. */
export type HypotheticalExchange = Exchange & { readonly isHypothetical: true };

/** Every exchange that the pipeline passes to a hook is one of these. */
export const asHooked = (x: unknown): HookedExchange => x as HookedExchange;

// Failures are marked outside of the errors, which plugins can write to.
const failureReasons = new WeakMap<object, "quarantine" | "invalid" | "timeout">();
const hostFaults = new WeakSet<Fault>();

/**
 * Marks an error from a host function that a hook called. If the hook does not catch the error, the
 * hook has failed. The error is not a rejection by the hook.
 */
export function markAsHookFailure<P>(problem: P): P {
  const fault = getFault(problem);
  if (fault) hostFaults.add(fault);
  return problem;
}

/**
 * Whether the error is the hook's own rejection of the request. A rejection takes effect regardless
 * of `on_error`.
 */
function isDeliberateRejection(problem: unknown): boolean {
  const fault = getFault(problem);
  return fault !== undefined && fault.kind !== "internal" && !hostFaults.has(fault);
}

/**
 * Whether the error was thrown because the hook is in quarantine. The beginning of the quarantine
 * is logged, so these errors are not.
 */
export const isQuarantineError = (problem: unknown): boolean =>
  failureReasons.get(problem as object) === "quarantine";

/** Creates the error for an unusable result of a hook. */
export function invalidResult(why: string): Error {
  const problem = new TypeError(why);
  failureReasons.set(problem, "invalid");
  return problem;
}

/**
 * Returns the result of a synchronous hook. Throws if the result is a promise, because its effect
 * would come too late. If that promise rejects, the process does not crash.
 */
export function requireSyncResult<T>(result: T): T {
  if (result === undefined || !isPromise(result)) return result;
  ignoreRejection(result as Promise<unknown>);
  throw new TypeError(
    "A synchronous hook returned a promise. It must finish its work before it returns.",
  );
}

/** Prevents a rejection of the promise from crashing the process. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Creates the timeout error. It names the hook, and the timeout is logged for the operator. */
export function createHookTimeout({ id, timeoutMs, log }: HookFailurePolicy, hook: string): Error {
  log.warn({ plugin: id, hook, timeout_ms: timeoutMs }, "hook timed out");
  const problem = createFault("unavailable", `${id} exceeded its time limit (${hook}).`, {
    code: "hook_timeout",
    details: { plugin: id, hook },
  });
  failureReasons.set(problem, "timeout");
  return markAsHookFailure(problem);
}

/** The deadline of one asynchronous hook. */
export class HookDeadline implements TimerEntry {
  timerIndex = -1;
  /**
   * Set by the first tick. Most hooks finish before the first tick, and reading a clock would cost
   * more than running them.
   */
  #dueAt = -1;
  readonly #guard: HookGuard;
  readonly #onTimeout: (problem: unknown) => void;
  readonly #isWaitingForClient: (() => boolean) | undefined;

  /** The deadline is extended while `isWaitingForClient` returns true. */
  constructor(
    guard: HookGuard,
    onTimeout: (problem: unknown) => void,
    isWaitingForClient?: () => boolean,
  ) {
    this.#guard = guard;
    this.#onTimeout = onTimeout;
    this.#isWaitingForClient = isWaitingForClient;
  }

  start(): void {
    this.#dueAt = -1;
    this.#guard.policy.timerWheel.add(this);
  }
  stop(): void {
    this.#guard.policy.timerWheel.remove(this);
  }
  onTick(now: number): void {
    const { policy, hook } = this.#guard;
    if (this.#dueAt < 0) this.#dueAt = now + policy.timeoutMs;
    if (now < this.#dueAt) return;
    if (this.#isWaitingForClient?.()) return this.start();
    this.stop();
    this.#onTimeout(createHookTimeout(policy, hook));
  }
}

/** How the result of a hook is used. */
interface WrapOptions<A, B, R> {
  /** Returns the exchange from the hook's arguments. */
  exchangeOf(a: A, b: B): unknown;
  /** Returns the result that is used if the hook's failure is skipped. */
  fallback?: (a: A) => R;
  /** Throws if the result is unusable. */
  check?: (result: R, a: A, b: B) => void;
  /** Whether the hook must return its result, not a promise. */
  isSync?: boolean;
  /** Whether an error is rethrown unchanged, because it is reported elsewhere. */
  rethrows?: boolean;
}

/**
 * Maximum number of recorded effects per request. A request runs each hook once, and a call runs
 * some of them again. More entries indicate a mistake, so they need not be recorded completely.
 */
const MAX_ENTRIES = 32;
/** Shortest wait that is recorded, in milliseconds. */
const MIN_WAIT_MS = 1;

/** Runs one hook of one plugin. */
export class HookGuard {
  readonly policy: HookFailurePolicy;
  readonly hook: GuardedFunction;
  /** Whether a failure of the hook is skipped. */
  readonly skips: boolean;
  readonly #breaker: HookBreaker | undefined;

  constructor(policy: HookFailurePolicy, hook: GuardedFunction) {
    this.policy = policy;
    this.hook = hook;
    this.skips = policy.onError === "continue" && SKIPPABLE_HOOK_SET.has(hook);
    this.#breaker = policy.breakers[hook];
  }

  /**
   * Throws if the hook is in quarantine. The breaker is checked only if it has recorded a failure.
   */
  assertAvailable(): void {
    const breaker = this.#breaker;
    if (breaker && !breaker.isHealthy && !breaker.tryEnter()) throw quarantineError(breaker);
  }

  /** Throws if the hook is in quarantine. Unlike `assertAvailable`, it starts no probe. */
  assertNotBlocked(): void {
    const breaker = this.#breaker;
    if (breaker && !breaker.isHealthy && breaker.isBlocked) throw quarantineError(breaker);
  }

  /** Records that the hook worked. Rejecting a request counts as success. */
  succeed(): void {
    const breaker = this.#breaker;
    if (breaker && !breaker.isHealthy) breaker.recordSuccess();
  }

  /**
   * Records an error that the hook threw, for observers and for its circuit breaker. Returns the
   * error for the client, or undefined if the failure is skipped. A fault is returned unchanged.
   * For any other failure, the error names the plugin as in gateway.yaml. The thrown error itself
   * is only logged. `since`: when the request began to wait for the hook. Undefined if it did not
   * wait.
   */
  fail(x: HookedExchange, problem: unknown, since = 0): unknown {
    const { id, log } = this.policy;
    const { hook } = this;
    const isRejection = this.#recordFailure(x, problem, since);
    if (isRejection) return problem;
    if (this.skips) {
      if (!isQuarantineError(problem))
        log.warn({ plugin: id, hook, action: "skipped", err: problem }, "hook failed");
      return undefined;
    }
    if (getFault(problem)) return problem;
    log.error({ plugin: id, hook, err: problem }, "hook failed");
    return createFault(
      "internal",
      `${id} failed (${hook}). See the gateway log for this request ID.`,
      { code: "plugin_failed", details: { plugin: id, hook }, cause: problem },
    );
  }

  /** Returns whether the error is the hook's own rejection. */
  #recordFailure(x: HookedExchange, problem: unknown, since: number): boolean {
    const isRejection = isDeliberateRejection(problem);
    this.record(x, isRejection ? "refused" : this.skips ? "skipped" : "failed", since);
    if (isRejection) this.succeed();
    else if (!isQuarantineError(problem)) {
      const reason = failureReasons.get(problem as object);
      this.#breaker?.recordFailure(
        reason === "invalid" || reason === "timeout" ? reason : "threw",
        x.identity?.id ?? x.address,
      );
    }
    return isRejection;
  }

  /**
   * Records an effect of the hook for observers: the hook rejected, failed, responded, or was
   * waited for. Nothing is recorded if there is no observer.
   */
  record(x: HookedExchange, effect: RequestRecordHook["effect"], since = 0): void {
    if (x.isHypothetical || !isHook(this.hook) || !x.state.gen.reportRequest) return;
    const { outcome } = x.state;
    if ((outcome.hookActivity?.length ?? 0) >= MAX_ENTRIES) return;
    const ms = since ? Math.round(performance.now() - since) : undefined;
    (outcome.hookActivity ??= []).push({ plugin: this.policy.id, hook: this.hook, effect, ms });
  }

  /**
   * Wraps a hook of up to two arguments. The wrapped hook returns a promise only if the hook does.
   */
  wrap<A, B, R>(
    run: (a: A, b: B) => R | Promise<R>,
    { exchangeOf, fallback, check, isSync = false, rethrows = false }: WrapOptions<A, B, R>,
  ): (a: A, b: B) => R | Promise<R> {
    const handleFailure = (a: A, b: B, problem: unknown, since: number): R => {
      const x = asHooked(exchangeOf(a, b));
      if (rethrows) {
        this.#recordFailure(x, problem, since);
        throw problem;
      }
      const error = this.fail(x, problem, since);
      if (error !== undefined) throw error;
      return fallback!(a);
    };
    return (a, b) => {
      let result: R | Promise<R>;
      try {
        this.assertAvailable();
        result = run(a, b);
        if (isSync) requireSyncResult(result);
        if (!isPromise(result)) {
          check?.(result, a, b);
          this.succeed();
          return result;
        }
      } catch (problem) {
        return handleFailure(a, b, problem, 0);
      }
      return this.#wait(asHooked(exchangeOf(a, b)), result, {
        check: check && ((got) => check(got, a, b)),
        instead: (problem, since) => handleFailure(a, b, problem, since),
      });
    };
  }

  /** Waits for a hook until its deadline. After that, its result or error is ignored. */
  #wait<R>(
    x: HookedExchange,
    waiting: Promise<R>,
    of: {
      /** Throws if the result is unusable. */
      readonly check: ((result: R) => void) | undefined;
      /** Returns or throws what is used in place of a failed hook's result. */
      readonly instead: (problem: unknown, since: number) => R;
    },
  ): Promise<R> {
    // Without an observer, the clock is not read.
    const since = !x.isHypothetical && x.state.gen.reportRequest ? performance.now() : 0;
    return new Promise((resolve, reject) => {
      let isDone = false;
      const failed = (problem: unknown) => {
        if (isDone) return;
        isDone = true;
        deadline.stop();
        try {
          resolve(of.instead(problem, since));
        } catch (error) {
          reject(error as Error);
        }
      };
      const isWaitingForClient =
        this.hook === "admit" && !x.isHypothetical ? () => x.isAwaitingBody : undefined;
      const deadline = new HookDeadline(this, failed, isWaitingForClient);
      deadline.start();
      waiting.then((result) => {
        if (isDone) return;
        try {
          of.check?.(result);
        } catch (problem) {
          return failed(problem);
        }
        isDone = true;
        deadline.stop();
        if (since && performance.now() - since >= MIN_WAIT_MS) this.record(x, "delayed", since);
        this.succeed();
        resolve(result);
      }, failed);
    });
  }
}

function quarantineError(breaker: HookBreaker): Error {
  const problem = markAsHookFailure(breaker.createError());
  failureReasons.set(problem, "quarantine");
  return problem;
}
