import type { Hooks } from "../../plugin/middleware.ts";
import {
  requireSyncResult,
  recordHookFailure,
  assertNotQuarantined,
  isDeliberateRejection,
  skipOrRethrow,
  recordHookSuccess,
  type HookFailurePolicy,
} from "./hook-guard.ts";

/**
 * Wraps a watch hook. If it fails under `continue`, it receives no more events, and the response
 * continues.
 */
export function guardWatchHook(
  policy: HookFailurePolicy,
  run: NonNullable<Hooks["watch"]>,
): NonNullable<Hooks["watch"]> {
  if (policy.onError === "reject") return run;
  return (call, stop) => {
    let observe: ReturnType<typeof run> | undefined;
    const failed = (problem: unknown) => {
      observe = undefined;
      if (!isDeliberateRejection(problem))
        recordHookFailure(policy, "watch", call.exchange, problem);
      skipOrRethrow(policy, "watch", problem);
    };
    try {
      assertNotQuarantined(policy, "watch");
      observe = requireSyncResult(run(call, stop));
    } catch (problem) {
      failed(problem);
    }
    return (event) => {
      try {
        if (!observe) return;
        requireSyncResult(observe(event));
        if (event.type === "finish") recordHookSuccess(policy, "watch");
      } catch (problem) {
        failed(problem);
      }
    };
  };
}
