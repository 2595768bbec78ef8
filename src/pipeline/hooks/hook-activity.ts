// What hooks had to do with a request, for observers: noted where one refuses, fails, answers or is waited for, and only where
// there is an observer to hear of it.
import type { Hooks } from "../../plugin/middleware.ts";
import type { RequestRecordHook } from "../../plugin/observer.ts";

/** A request meets each hook once and a call meets some of them again: more is a mistake that need not be told whole. */
const MAX_ENTRIES = 32;
/** Less is no wait. */
const MIN_WAIT_MS = 1;

/** Of what stands behind an exchange that a hook is handed. */
interface HookActivityState {
  readonly gen: { readonly reportRequest: unknown };
  hookActivity: RequestRecordHook[] | undefined;
}

/** One that no client sent has nothing behind it. */
const hookActivityState = (x: unknown): HookActivityState | undefined =>
  (x as { "~"?: HookActivityState })["~"];

export function recordHookActivity(
  x: unknown,
  plugin: string,
  hook: keyof Hooks,
  did: RequestRecordHook["effect"],
  since?: number,
): void {
  const state = hookActivityState(x);
  if (!state?.gen.reportRequest || (state.hookActivity?.length ?? 0) >= MAX_ENTRIES) return;
  const ms = since ? Math.round(performance.now() - since) : undefined;
  (state.hookActivity ??= []).push({ plugin, hook, effect: did, ms });
}

/** When a wait began; 0 where there is no observer, and no clock is read. */
export const startWaitClock = (x: unknown): number =>
  hookActivityState(x)?.gen.reportRequest ? performance.now() : 0;

/** A hook that let the request pass was waited for since then. */
export function recordHookWait(x: unknown, plugin: string, hook: keyof Hooks, since: number): void {
  if (since && performance.now() - since >= MIN_WAIT_MS)
    recordHookActivity(x, plugin, hook, "delayed", since);
}
