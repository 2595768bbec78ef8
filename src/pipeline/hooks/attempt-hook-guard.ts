// Handles failures of attempt hooks. An attempt hook wraps a call, so if it fails, the provider's
// response may still be forwarded.
import { createFault } from "../../model/error.ts";
import type { Call, UpstreamResponse } from "../../plugin/call.ts";
import type { AttemptResult, Hooks } from "../../plugin/middleware.ts";
import {
  recordHookFailure,
  HookDeadline,
  assertNotQuarantined,
  toHookFault,
  skipOrRethrow,
  type HookFailurePolicy,
  ignoreRejection,
  invalidResult,
  recordHookSuccess,
} from "./hook-guard.ts";

/**
 * Wraps an attempt hook with its deadline. The deadline is paused while the provider is called,
 * because calls have timeouts of their own.
 */
export function guardAttemptHook(
  of: HookFailurePolicy,
  run: NonNullable<Hooks["attempt"]>,
): NonNullable<Hooks["attempt"]> {
  return (call, next) => new AttemptHookRun(of, call, next).run(run);
}

/**
 * Whether the value is a reply, a recording, or a response made by the hook. Its content is checked
 * where it is used.
 */
const isAttemptResult = (got: unknown): boolean =>
  typeof got === "object" &&
  got !== null &&
  ("headers" in got || "response" in got || "body" in got);

class AttemptHookRun {
  readonly #policy: HookFailurePolicy;
  readonly #call: Call;
  readonly #next: () => Promise<UpstreamResponse>;
  #resolve!: (said: AttemptResult | Promise<AttemptResult>) => void;
  #reject!: (problem: unknown) => void;
  #deadline: HookDeadline | undefined;
  #reply: Promise<UpstreamResponse> | undefined;
  /** The error of the call to the provider. A hook that rethrows it has not failed. */
  #providerError: unknown;
  #isDone = false;

  constructor(of: HookFailurePolicy, call: Call, next: () => Promise<UpstreamResponse>) {
    this.#policy = of;
    this.#call = call;
    this.#next = next;
  }

  run(run: NonNullable<Hooks["attempt"]>): Promise<AttemptResult> {
    let said: ReturnType<typeof run>;
    try {
      assertNotQuarantined(this.#policy, "attempt");
      said = run(this.#call, () => this.#callNext());
    } catch (problem) {
      said = Promise.reject(problem as Error);
    }
    // The hook returned the reply unchanged, so there is nothing of its own to wait for.
    if (said !== this.#reply) return this.#awaitResult(said);
    recordHookSuccess(this.#policy, "attempt");
    return said;
  }

  #awaitResult(said: Promise<AttemptResult> | AttemptResult): Promise<AttemptResult> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#deadline = new HookDeadline(
        this.#policy,
        "attempt",
        (why) => this.#handleFailure(why),
        undefined,
      );
      if (this.#reply) this.#pauseDeadline(this.#reply);
      else this.#deadline.start();
      Promise.resolve(said).then(
        (answer) => {
          if (!isAttemptResult(answer))
            return this.#handleFailure(invalidResult("attempt returned no response"));
          this.#finish(() => {
            recordHookSuccess(this.#policy, "attempt");
            resolve(answer);
          });
        },
        (problem: unknown) => this.#handleFailure(problem),
      );
    });
  }

  #callNext(): Promise<UpstreamResponse> {
    // A hook that ignores this promise would otherwise crash the process with an unhandled
    // rejection.
    if (this.#isDone)
      return ignoreRejection(
        Promise.reject(createFault("internal", "next() was called after the hook was canceled.")),
      );
    const asked = this.#next();
    if (this.#reply) return ignoreRejection(asked);
    this.#reply = asked;
    if (this.#deadline) this.#pauseDeadline(asked);
    return asked;
  }

  #pauseDeadline(asked: Promise<UpstreamResponse>): void {
    this.#deadline!.stop();
    const on = () => {
      if (!this.#isDone) this.#deadline!.start();
    };
    asked.then(on, (refusal: unknown) => {
      this.#providerError = refusal;
      on();
    });
  }

  /**
   * Handles a failure of the hook. If the failure is skipped, the reply that the hook requested
   * goes to the client. If the hook requested none, the provider is called in its place.
   */
  #handleFailure(problem: unknown): void {
    this.#finish(() => {
      if (problem === this.#providerError) recordHookSuccess(this.#policy, "attempt");
      else recordHookFailure(this.#policy, "attempt", this.#call.exchange, problem);
      if (this.#policy.onError === "reject")
        return this.#reject(
          problem === this.#providerError ? problem : toHookFault(this.#policy, "attempt", problem),
        );
      try {
        skipOrRethrow(this.#policy, "attempt", problem);
      } catch (word) {
        return this.#reject(word);
      }
      return this.#resolve(this.#reply ?? this.#next());
    });
  }

  #finish(say: () => void): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#deadline!.stop();
    say();
  }
}
