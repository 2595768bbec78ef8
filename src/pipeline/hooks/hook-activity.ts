// Records hook activity of a request for observers: a hook that rejects, fails, answers, or is
// waited for. Nothing is recorded if there is no observer.
import type { Hooks } from "../../plugin/middleware.ts";
import type { RequestRecordHook } from "../../plugin/observer.ts";

/**
 * Maximum number of entries per request. A request runs each hook once and a call runs some of them
 * again, so more entries are a mistake that need not be reported completely.
 */
const MAX_ENTRIES = 32;
/** Shortest wait that is recorded, in milliseconds. */
const MIN_WAIT_MS = 1;

/** The part of an exchange's internal state that is used here. */
interface HookActivityState {
  readonly gen: { readonly reportRequest: unknown };
  readonly outcome: { hookActivity: RequestRecordHook[] | undefined };
}

/** Returns the state of an exchange. A hypothetical exchange that no client sent has none. */
const hookActivityState = (x: unknown): HookActivityState | undefined =>
  (x as { state?: HookActivityState }).state;

export function recordHookActivity(
  x: unknown,
  plugin: string,
  hook: keyof Hooks,
  did: RequestRecordHook["effect"],
  since?: number,
): void {
  const state = hookActivityState(x);
  if (!state?.gen.reportRequest || (state.outcome.hookActivity?.length ?? 0) >= MAX_ENTRIES) return;
  const ms = since ? Math.round(performance.now() - since) : undefined;
  (state.outcome.hookActivity ??= []).push({ plugin, hook, effect: did, ms });
}

/**
 * Returns the start time of a wait. Returns 0 if there is no observer, without reading the clock.
 */
export const startWaitClock = (x: unknown): number =>
  hookActivityState(x)?.gen.reportRequest ? performance.now() : 0;

/** Records how long the request waited for a hook that accepted it. */
export function recordHookWait(x: unknown, plugin: string, hook: keyof Hooks, since: number): void {
  if (since && performance.now() - since >= MIN_WAIT_MS)
    recordHookActivity(x, plugin, hook, "delayed", since);
}
