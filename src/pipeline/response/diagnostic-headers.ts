// Creates headers that describe how a request was served. Only headers that gateway.yaml enables
// are sent, because they reveal details of the gateway to clients.
import { nanoToDecimal } from "../../money/format-usd.ts";
import type { LimitState } from "../../plugin/store/limit.ts";
import { visibleLimits } from "../accounts/accounts.ts";
import type { ExchangeState } from "../exchange/exchange.ts";

type HeaderLine = readonly [name: string, value: string];
const NONE: readonly HeaderLine[] = [];

/**
 * Creates the headers from what is known when they are sent. `isComplete`: whether the response is
 * complete, so that its cost is known.
 */
export function createDiagnosticHeaders(
  state: ExchangeState,
  isComplete: boolean,
): readonly HeaderLine[] {
  const wanted = state.gen.responseHeaders;
  if (!wanted) return NONE;
  const lines: HeaderLine[] = [];
  const { sentCalls } = state;
  if (wanted.has("x-tollgate-attempts"))
    lines.push(["x-tollgate-attempts", String(sentCalls?.count ?? 0)]);
  if (wanted.has("x-tollgate-provider") && sentCalls)
    lines.push(["x-tollgate-provider", sentCalls.lastProvider]);
  if (wanted.has("x-tollgate-cost") && isComplete) {
    const cost = totalCost(state);
    if (cost !== null) lines.push(["x-tollgate-cost", nanoToDecimal(cost)]);
  }
  if (wanted.has("x-tollgate-budget")) {
    const budget = formatTightestBudget(visibleLimits(state.limitStates, state.account));
    if (budget) lines.push(["x-tollgate-budget", budget]);
  }
  if (wanted.has("server-timing")) lines.push(["server-timing", formatServerTiming(state)]);
  return lines;
}

/**
 * Returns the total cost of all attempts in nanodollars, or null if one of them has no known price.
 */
function totalCost({ callRecords }: ExchangeState): bigint | null {
  let sum = 0n;
  for (const { costNano } of callRecords) {
    if (costNano === null) return null;
    sum += costNano;
  }
  return sum;
}

/**
 * Formats the budget with the smallest remaining amount. The amount is as of the call's
 * reservation, with the reservation subtracted.
 */
function formatTightestBudget(limits: readonly LimitState[]): string | undefined {
  let least: LimitState | undefined;
  for (const limit of limits)
    if (limit.unit === "nano_usd" && (!least || limit.remaining < least.remaining)) least = limit;
  if (!least) return undefined;
  const { remaining, max, per, scope, resetsAt } = least;
  const reset = per === "total" ? "never" : new Date(resetsAt).toISOString();
  return `left=${nanoToDecimal(BigInt(remaining))}, max=${nanoToDecimal(BigInt(max))}, per=${per}, reset=${reset}, of=${encodeURI(scope)}`;
}

/**
 * Formats the timing. `gw`: time until a provider was called, including the client's body and the
 * ledger row. `upstream`: time from then until now.
 */
function formatServerTiming({ startedAt, sentCalls }: ExchangeState): string {
  const now = performance.now();
  const gateway = `gw;dur=${((sentCalls?.firstSentAt ?? now) - startedAt).toFixed(1)}`;
  return sentCalls
    ? `${gateway}, upstream;dur=${(now - sentCalls.firstSentAt).toFixed(1)}`
    : gateway;
}
