// Wraps synchronous hooks with their failure handling.
import {
  type GuardedFunction,
  requireSyncResult,
  recordHookFailure,
  assertNotQuarantined,
  toHookFault,
  type HookFailurePolicy,
  recordHookSuccess,
} from "./hook-guard.ts";

/** Wraps a synchronous hook. `exchangeOf`: returns the exchange of a call. */
export const guardSyncHook =
  <A extends readonly unknown[], R>(
    policy: HookFailurePolicy,
    hook: GuardedFunction,
    run: (...policy: A) => R,
    { exchangeOf, check }: { exchangeOf: (...policy: A) => unknown; check?: (said: R) => void },
  ): ((...policy: A) => R) =>
  (...args) => {
    try {
      assertNotQuarantined(policy, hook);
      const said = requireSyncResult(run(...args));
      check?.(said);
      recordHookSuccess(policy, hook);
      return said;
    } catch (problem) {
      recordHookFailure(policy, hook, exchangeOf(...args), problem);
      throw toHookFault(policy, hook, problem);
    }
  };
