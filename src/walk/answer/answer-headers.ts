// What an answer says of the way that it came, where gateway.yaml asks for it. None of it is there by itself: it tells clients about
// the gateway.
import { nanoToDecimal } from "../../money/format.ts";
import type { LimitState } from "../../plugin/limit.ts";
import { telling } from "../accounts.ts";
import type { ExchangeState } from "../exchange.ts";

type Line = readonly [name: string, value: string];
const NONE: readonly Line[] = [];

/** As far as it is known when the head leaves; `whole`: the answer is all there, and what it cost is known. */
export function answerHeaders(of: ExchangeState, whole: boolean): readonly Line[] {
  const wanted = of.gen.answerHeaders;
  if (!wanted) return NONE;
  const lines: Line[] = [];
  const { sent } = of;
  if (wanted.has("x-tollgate-attempts")) lines.push(["x-tollgate-attempts", String(sent?.n ?? 0)]);
  if (wanted.has("x-tollgate-provider") && sent) lines.push(["x-tollgate-provider", sent.provider]);
  if (wanted.has("x-tollgate-cost") && whole) {
    const cost = costOf(of);
    if (cost !== null) lines.push(["x-tollgate-cost", nanoToDecimal(cost)]);
  }
  if (wanted.has("x-tollgate-budget")) {
    const budget = budgetOf(telling(of.limits, of.branch));
    if (budget) lines.push(["x-tollgate-budget", budget]);
  }
  if (wanted.has("server-timing")) lines.push(["server-timing", timing(of)]);
  return lines;
}

/** Of all attempts; null: one of them has no known price. */
function costOf({ calls }: ExchangeState): bigint | null {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null) return null;
    sum += costNano;
  }
  return sum;
}

/** The one with the least left, as the call's reserve found it: what it holds itself is taken off. */
function budgetOf(limits: readonly LimitState[]): string | undefined {
  let least: LimitState | undefined;
  for (const limit of limits)
    if (limit.unit === "nano_usd" && (!least || limit.left < least.left)) least = limit;
  if (!least) return undefined;
  const { left, max, per, scope, resetsAt } = least;
  const reset = per === "total" ? "never" : new Date(resetsAt).toISOString();
  return `left=${nanoToDecimal(BigInt(left))}, max=${nanoToDecimal(BigInt(max))}, per=${per}, reset=${reset}, of=${encodeURI(scope)}`;
}

/** gw: until a provider was asked, the client's body and the ledger's row included; upstream: from there until now. */
function timing({ started, sent }: ExchangeState): string {
  const now = performance.now();
  const gateway = `gw;dur=${((sent?.since ?? now) - started).toFixed(1)}`;
  return sent ? `${gateway}, upstream;dur=${(now - sent.since).toFixed(1)}` : gateway;
}
