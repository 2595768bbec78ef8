// Creates headers that describe how a request was served. Only headers that gateway.yaml enables
// are sent, because they reveal details of the gateway to clients.
import { nanoToDecimal } from "../../money/decimal.ts";
import type { LimitState } from "../../plugin/store/limit.ts";
import { visibleLimits } from "../accounts/accounts.ts";
import type { BillingState, ExchangeState } from "../exchange/exchange-state.ts";

/** The parts of an exchange that the headers describe. */
type DiagnosedState = Pick<ExchangeState, "gen" | "connection" | "admission" | "calls" | "billing">;
type HeaderLine = readonly [name: string, value: string];
const NONE: readonly HeaderLine[] = [];

/**
 * Creates the headers from the data that is available when they are sent. `isComplete`: whether the
 * response is complete, so that its cost is known.
 */
export function createDiagnosticHeaders(
  state: DiagnosedState,
  isComplete: boolean,
): readonly HeaderLine[] {
  const wanted = state.gen.responseHeaders;
  if (!wanted) return NONE;
  const lines: HeaderLine[] = [];
  const { sent } = state.calls;
  if (wanted.has("x-tollgate-attempts"))
    lines.push(["x-tollgate-attempts", String(sent?.count ?? 0)]);
  if (wanted.has("x-tollgate-provider") && sent)
    lines.push(["x-tollgate-provider", sent.lastProvider]);
  if (wanted.has("x-tollgate-cost") && isComplete) {
    const cost = totalCost(state.billing);
    if (cost !== null) lines.push(["x-tollgate-cost", nanoToDecimal(cost)]);
  }
  if (wanted.has("x-tollgate-budget")) {
    const budget = formatTightestBudget(
      visibleLimits(state.billing.limitStates, state.admission.account),
    );
    if (budget) lines.push(["x-tollgate-budget", budget]);
  }
  if (wanted.has("server-timing")) lines.push(["server-timing", formatServerTiming(state)]);
  return lines;
}

/**
 * Whether a stream ends with its cost as a trailer: gateway.yaml enables the header, and the client
 * accepts trailers (`TE: trailers`). The bytes of the body do not change.
 */
export const sendsCostTrailer = ({ gen, connection }: DiagnosedState): boolean =>
  gen.responseHeaders?.has("x-tollgate-cost") === true &&
  /(?:^|[\s,])trailers(?:$|[\s,;])/i.test(String(connection.req.headers["te"] ?? ""));

/**
 * Whether the usage in the last event contains the cost: gateway.yaml enables the header, and the
 * client sends it with the value `true`.
 */
export const sendsCostInUsage = ({ gen, connection }: DiagnosedState): boolean =>
  gen.responseHeaders?.has("x-tollgate-cost") === true &&
  connection.req.headers["x-tollgate-cost"] === "true";

/** Returns the trailers of a stream. Without a known cost, there are none. */
export function createCostTrailer({ billing }: DiagnosedState): Record<string, string> {
  const cost = totalCost(billing);
  return cost === null ? {} : { "x-tollgate-cost": nanoToDecimal(cost) };
}

/**
 * Returns the total cost of all attempts in nanodollars, or null if one of them has no known price.
 */
export function totalCost({ records }: BillingState): bigint | null {
  let sum = 0n;
  for (const { costNano } of records) {
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
function formatServerTiming({ connection, calls: { sent } }: DiagnosedState): string {
  const now = performance.now();
  const gateway = `gw;dur=${((sent?.firstSentAt ?? now) - connection.startedAt).toFixed(1)}`;
  return sent ? `${gateway}, upstream;dur=${(now - sent.firstSentAt).toFixed(1)}` : gateway;
}
