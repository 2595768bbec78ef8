// Describes cooldowns of targets and unreachable plugins.
import type { CooldownStatus, UnreachablePlugin } from "../../runtime/gateway-api.ts";
import type { QuarantinedHook } from "../../plugin/gateway-event.ts";
import { sanitize, formatTime } from "./terminal.ts";

/**
 * Describes a cooldown, its reason, and its effect: "cooling down until 10:03:05 because its
 * requests fail (overloaded); tried last".
 */
export function formatCooldown({ keys, ...rest }: Omit<CooldownStatus, "target">): string {
  if (!keys) return formatCooldownState(rest);
  const named = keys.map((key) => sanitize(key === "" ? "none" : key)).join(", ");
  return `for requests of ${keys.length === 1 ? "the key" : "the keys"} ${named} only: ${formatCooldownState(rest)}`;
}

function formatCooldownState({
  state,
  reason,
  until,
  rejectsRequests,
}: Omit<CooldownStatus, "target" | "keys">): string {
  if (state === "half_open") return `cooldown over (${reason}); the next request probes`;
  if (state === "recovering")
    return `recovering until ${formatTime(until)} (${reason}); gets more requests step by step`;
  const effect = rejectsRequests
    ? "no request is sent until then"
    : "tried last: requests are sent if no other candidate is left";
  return `cooling down until ${formatTime(until)} because ${COOLDOWN_REASONS[state]} (${reason}); ${effect}`;
}

const COOLDOWN_REASONS: {
  readonly [S in Exclude<CooldownStatus["state"], "half_open" | "recovering">]: string;
} = {
  credential_rejected: "the provider rejected its credential",
  retry_after: "the provider sent retry-after",
  open: "requests to it fail",
};

export const formatQuarantine = ({ plugin, hook, reason, until }: QuarantinedHook): string =>
  `${plugin} (${hook}): ${FAILURE_LABELS[reason]} again and again, not asked until ${formatTime(until)}`;

/**
 * Describes an unreachable plugin: "middleware.guard: since 10:03:05, the process ended; requests
 * that pass it are refused; next attempt 10:03:07".
 */
export const formatUnreachable = (of: UnreachablePlugin): string =>
  `${of.plugin} since ${formatTime(of.since)}: ${of.reason.replace(/\.$/, "")}; ${
    of.requests === "rejected"
      ? "requests that pass through it fail with an error"
      : "requests continue without it"
  }; next attempt ${formatTime(of.retryAt)}`;

const FAILURE_LABELS: { readonly [W in QuarantinedHook["reason"]]: string } = {
  threw: "it threw",
  timeout: "it took too long",
  invalid: "it gave what cannot be used",
};
