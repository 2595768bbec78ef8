// Outcome of a request, for the list and for the request's own page.
import { html } from "htm/preact";
import { Badge, type Tone } from "../../parts/basics.ts";
import type { ObservedRequest, ObservedCall } from "../../api-types.ts";
import { formatDuration, formatUsd } from "../../format.ts";

const TONES: Readonly<Record<string, Tone>> = {
  ok: "good",
  client_error: "warn",
  refused: "warn",
  upstream_error: "bad",
  error: "bad",
  canceled: "",
};

/** Shows the outcome as a word and a color. */
export const Outcome = ({
  of,
}: {
  of: Pick<ObservedRequest, "outcome" | "status" | "fault" | "code" | "phase" | "provider">;
}) =>
  of.phase
    ? html`<${Badge} tone="accent">${of.phase}${of.provider && ` ${of.provider}`}<//>`
    : html`<${Badge} tone=${TONES[of.outcome ?? "refused"] ?? ""}
        >${of.status || (of.outcome === "ok" ? "ok" : "")}${of.outcome === "ok" ? "" : ` ${of.fault?.code ?? of.fault?.kind ?? of.code ?? of.outcome}`}<//
      >`;

/** Returns the total cost of all calls, or undefined if a call has no price. */
export const requestCost = ({ calls = [] }: Pick<ObservedRequest, "calls">): bigint | undefined => {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null || costNano === undefined) return undefined;
    sum += BigInt(costNano);
  }
  return sum;
};

/** Whether the call was canceled because the other call of the hedge responded first. */
export const hasLost = ({ fault }: ObservedCall): boolean => fault?.code === "hedge_lost";

/** Returns the role of a call in a hedge, or undefined if the call was not part of one. */
export const hedgeRole = (call: ObservedCall): string | undefined =>
  [call.hedge ? "hedge" : "", hasLost(call) ? "lost" : ""].filter(Boolean).join(", ") || undefined;

/**
 * Describes a hedge and the cost of the call that was not used. Undefined if the request was not
 * hedged.
 */
export function formatHedge(calls: readonly ObservedCall[]): string | undefined {
  const hedge = calls.find((call) => call.hedge);
  const slow = hedge && calls.find(({ n }) => n === hedge.n - 1);
  if (!slow) return undefined;
  const lost = calls.find(hasLost);
  const made = `Call ${hedge.n} was sent ${formatDuration(hedge.startMs - slow.startMs)} after call ${slow.n}, which had not returned a first token.`;
  if (!lost) return hedge.fault ? `${made} It failed (${hedge.fault.kind}).` : made;
  const won = lost === hedge ? slow : hedge;
  const cost = lost.costNano == null ? "has no price" : `cost ${formatUsd(lost.costNano)}`;
  return `${made} Call ${won.n} returned its first token first, so call ${lost.n} was canceled. The canceled call ${cost}${lost.state === "estimated" ? " (estimated)" : ""}.`;
}
