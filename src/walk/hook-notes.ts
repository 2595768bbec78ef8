// What hooks had to do with a request, for observers: noted where one refuses, fails, answers or is waited for, and only where
// there is an observer to hear of it.
import type { Hooks } from "../plugin/middleware.ts";
import type { RequestRecordHook } from "../plugin/observer.ts";

/** A request meets each hook once and a call meets some of them again: more is a mistake that need not be told whole. */
const MOST = 32;
/** Less is no wait. */
const WAIT_MS = 1;

/** Of what stands behind an exchange that a hook is handed. */
interface Noting {
  readonly gen: { readonly seen: unknown };
  hooks: RequestRecordHook[] | undefined;
}

/** One that no client sent has nothing behind it. */
const stateOf = (x: unknown): Noting | undefined => (x as { "~"?: Noting })["~"];

export function note(
  x: unknown,
  plugin: string,
  hook: keyof Hooks,
  did: RequestRecordHook["did"],
  since?: number,
): void {
  const inner = stateOf(x);
  if (!inner?.gen.seen || (inner.hooks?.length ?? 0) >= MOST) return;
  const ms = since ? Math.round(performance.now() - since) : undefined;
  (inner.hooks ??= []).push({ plugin, hook, did, ms });
}

/** When a wait began; 0 where there is no observer, and no clock is read. */
export const clock = (x: unknown): number => (stateOf(x)?.gen.seen ? performance.now() : 0);

/** A hook that let the request pass was waited for since then. */
export function waited(x: unknown, plugin: string, hook: keyof Hooks, since: number): void {
  if (since && performance.now() - since >= WAIT_MS) note(x, plugin, hook, "waited", since);
}
