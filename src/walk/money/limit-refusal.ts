// What a client is told of a limit that refused it: which one, its value, what is left, when it is back, and what would have fitted. Of
// the limits of an account that tells nothing, only when to come again.
import { outputThatFits, type Ask } from "../../money/estimate.ts";
import { formatUsd } from "../../money/format.ts";
import { fail, fault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { LimitState } from "../../plugin/limit.ts";
import type { Verdict } from "../../plugin/store.ts";
import { A_LIMIT, type Branch } from "../accounts.ts";
import { blame } from "../upstream/blame.ts";

const CODES = { money: "insufficient_quota", other: "rate_limit_exceeded" } as const;

export function refuseLimit(
  { denied, retryAfterMs }: Extract<Verdict, { ok: false }>,
  branch: Branch | undefined,
  ask: Ask | undefined,
  claims: readonly { scope: string; unit: string; take: bigint }[],
): never {
  const { per, unit, scope } = denied;
  const resets = new Date(denied.resetsAt).toISOString();
  const money = unit === "nano_usd";
  const back = per === "total" ? "never reset" : `back at ${resets}`;
  if (branch?.quiet.has(scope)) {
    const when = !money || per === "total" || per === "open" ? "" : `; it is ${back}`;
    return refused(money, `${A_LIMIT}${when}.`, retryAfterMs);
  }
  return refused(
    money,
    money ? spent(denied, back, ask, claims) : reached(denied),
    retryAfterMs,
    detailsOf(denied, resets),
  );
}

function refused(
  money: boolean,
  message: string,
  retryAfterMs: number,
  details?: JsonObject,
): never {
  if (money) return fail("quota", message, { code: CODES.money, details });
  // The gateway's own word: no provider was asked, and none is named.
  throw blame(
    fault("rate_limited", message, { code: CODES.other, retryAfterMs, details }),
    "gateway",
  );
}

const detailsOf = ({ scope, unit, per, max, left }: LimitState, resets: string): JsonObject => ({
  limit: { scope, unit, per, max: String(max), left: String(left), resets_at: resets },
});

/** When to come again is said by the retry time, which is sooner than the end of the window where that slides. */
function reached({ unit, per, max, left, scope }: LimitState): string {
  if (unit === "concurrent") return `More than ${max} requests at once (${scope}).`;
  const span = per === "total" ? "in total" : `a ${per}`;
  return `The limit of ${max} ${unit} ${span} (${scope}) is reached: ${left} left.`;
}

function spent(
  { per, max, left, scope }: LimitState,
  back: string,
  ask: Ask | undefined,
  claims: readonly { scope: string; unit: string; take: bigint }[],
): string {
  const span = per === "total" ? "in total" : `a ${per}`;
  const wanted = claims.find((c) => c.unit === "nano_usd" && c.scope === scope)?.take ?? 0n;
  const fits = ask ? outputThatFits(BigInt(left), ask) : 0;
  return (
    `The budget of ${formatUsd(BigInt(max))} ${span} (${scope}) has ${formatUsd(BigInt(left))} left; ` +
    `this request would reserve ${formatUsd(wanted)}.${fits > 0 ? ` With max_tokens of ${fits} it would fit.` : ""} It is ${back}.`
  );
}
