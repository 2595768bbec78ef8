// What is known against a target or a plugin, in words.
import type { RestingStatus, UnreachablePlugin } from "../gateway/types.ts";
import type { QuarantinedHook } from "../plugin/notice.ts";
import { clean, moment } from "./terminal.ts";

/** "cooling down until 10:03:05 because its requests fail (overloaded); tried last": a cooldown, its reason, and what it changes. */
export function sayRest({ keys, ...rest }: Omit<RestingStatus, "what">): string {
  if (!keys) return saidOf(rest);
  const named = keys.map((key) => clean(key === "" ? "none" : key)).join(", ");
  return `for requests of ${keys.length === 1 ? "the key" : "the keys"} ${named} only: ${saidOf(rest)}`;
}

function saidOf({ state, why, until, refuses }: Omit<RestingStatus, "what" | "keys">): string {
  if (state === "half_open") return `cooldown over (${why}); the next request probes`;
  if (state === "recovering")
    return `recovering until ${moment(until)} (${why}); gets more requests step by step`;
  const effect = refuses
    ? "no request is sent until then"
    : "tried last: requests are sent if no other candidate is left";
  return `cooling down until ${moment(until)} because ${BECAUSE[state]} (${why}); ${effect}`;
}

const BECAUSE: {
  readonly [S in Exclude<RestingStatus["state"], "half_open" | "recovering">]: string;
} = {
  refused: "the provider rejected its credential",
  told: "the provider sent retry-after",
  open: "its requests fail",
};

export const sayQuarantine = ({ plugin, hook, why, until }: QuarantinedHook): string =>
  `${plugin} (${hook}): ${FAILED[why]} again and again, not asked until ${moment(until)}`;

/** "middleware.guard: since 10:03:05, the process ended; requests that pass it are refused; next attempt 10:03:07" */
export const sayUnreachable = (of: UnreachablePlugin): string =>
  `${of.plugin} since ${moment(of.since)}: ${of.why.replace(/\.$/, "")}; ${
    of.requests === "refused"
      ? "requests that pass through it fail with an error"
      : "requests continue without it"
  }; next attempt ${moment(of.retryAt)}`;

const FAILED: { readonly [W in QuarantinedHook["why"]]: string } = {
  threw: "it threw",
  slow: "it took too long",
  invalid: "it gave what cannot be used",
};
