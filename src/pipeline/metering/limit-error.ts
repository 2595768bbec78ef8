// Creates the error for a client that a limit rejected: the limit, its value, the remaining amount,
// the reset time, and what would have fitted. If an account hides its limits, the error contains
// only when to retry.
import { maxOutputForBudget, type HoldRequest } from "../../money/estimate.ts";
import { formatUsd } from "../../money/format-usd.ts";
import { fail, createFault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { LimitState } from "../../plugin/store/limit.ts";
import type { CommandResult } from "../../plugin/store/store.ts";
import { HIDDEN_LIMIT_MESSAGE, type ResolvedAccount } from "../accounts/accounts.ts";
import { attributeFault } from "../faults/fault-source.ts";

const ERROR_CODES = { money: "insufficient_quota", other: "rate_limit_exceeded" } as const;

export function throwLimitError(
  { denied, retryAfterMs }: Extract<CommandResult, { ok: false }>,
  branch: ResolvedAccount | undefined,
  ask: HoldRequest | undefined,
  claims: readonly { scope: string; unit: string; take: bigint }[],
): never {
  const { per, unit, scope } = denied;
  const resets = new Date(denied.resetsAt).toISOString();
  const isBudget = unit === "nano_usd";
  const resetText = per === "total" ? "is never reset" : `resets at ${resets}`;
  if (branch?.hiddenScopes.has(scope)) {
    const when = !isBudget || per === "total" || per === "open" ? "" : `; it ${resetText}`;
    return rejectWith(isBudget, `${HIDDEN_LIMIT_MESSAGE}${when}.`, retryAfterMs);
  }
  return rejectWith(
    isBudget,
    isBudget ? budgetMessage(denied, resetText, ask, claims) : rateLimitMessage(denied),
    retryAfterMs,
    detailsOf(denied, resets),
  );
}

function rejectWith(
  isBudget: boolean,
  message: string,
  retryAfterMs: number,
  details?: JsonObject,
): never {
  if (isBudget) return fail("quota", message, { code: ERROR_CODES.money, details });
  // The gateway itself rejects the request. No provider was called, so the fault names none.
  throw attributeFault(
    createFault("rate_limited", message, { code: ERROR_CODES.other, retryAfterMs, details }),
    "gateway",
  );
}

const detailsOf = (
  { scope, unit, per, max, remaining }: LimitState,
  resets: string,
): JsonObject => ({
  limit: { scope, unit, per, max: String(max), left: String(remaining), resets_at: resets },
});

/**
 * Returns the message for a rate limit. The retry time is sent separately, because with a sliding
 * window it is earlier than the end of the window.
 */
function rateLimitMessage({ unit, per, max, remaining, scope }: LimitState): string {
  if (unit === "concurrent") return `More than ${max} concurrent requests (${scope}).`;
  const span = per === "total" ? "in total" : `a ${per}`;
  return `The limit of ${max} ${unit} ${span} (${scope}) is reached: ${remaining} left.`;
}

function budgetMessage(
  { per, max, remaining, scope }: LimitState,
  resetText: string,
  ask: HoldRequest | undefined,
  claims: readonly { scope: string; unit: string; take: bigint }[],
): string {
  const span = per === "total" ? "in total" : `a ${per}`;
  const wanted = claims.find((c) => c.unit === "nano_usd" && c.scope === scope)?.take ?? 0n;
  const fits = ask ? maxOutputForBudget(BigInt(remaining), ask) : 0;
  return (
    `The budget of ${formatUsd(BigInt(max))} ${span} (${scope}) has ${formatUsd(BigInt(remaining))} left; ` +
    `this request would reserve ${formatUsd(wanted)}.${fits > 0 ? ` With max_tokens: ${fits} the request would fit.` : ""} It ${resetText}.`
  );
}
