// Chooses the endpoint if a provider has several endpoints for one model.
import type { ChatRequest, ModelRequest } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";

/** The request that is routed. */
export interface RoutedRequest {
  readonly x: Exchange;
  /** The request after the rewrite hooks. If unset, the client's own request. */
  readonly rewrittenRequest?: ModelRequest | undefined;
  /** Set if nothing is sent and the request has no content. */
  readonly hypothetical?: object;
}

/**
 * Chooses one candidate for each provider, model, and credential: the first endpoint whose protocol
 * accepts all stop sequences of the request. Stop sequences are emulated only if no endpoint
 * accepts them all.
 */
export function chooseEndpoints(
  list: readonly HostCandidate[],
  of: RoutedRequest,
): HostCandidate[] {
  if (list.length === 1) return [list[0]!];
  const chosen = new Map<string, HostCandidate>();
  let stops: number | undefined;
  for (const one of list) {
    const key = `${one.id}\n${one.credential}`;
    const before = chosen.get(key);
    if (!before) chosen.set(key, one);
    else if (
      maxStopSequences(before) < Infinity &&
      maxStopSequences(before) < (stops ??= countStopSequences(of))
    )
      if (stops <= maxStopSequences(one)) chosen.set(key, one);
  }
  return [...chosen.values()];
}

/** Passthrough mode and native endpoints have no codec that could emulate stop sequences. */
function maxStopSequences({ mode, mounted: { endpoint } }: HostCandidate): number {
  return (
    (mode === "translated" ? endpoint.protocol?.client?.maxStopSequences : undefined) ?? Infinity
  );
}

/**
 * Counts the stop sequences. Called only if the result matters, because it may be the first to
 * decode the request.
 */
function countStopSequences({ x, rewrittenRequest, hypothetical }: RoutedRequest): number {
  if (hypothetical || x.operation !== "chat" || x.actionType !== "generate") return 0;
  return ((rewrittenRequest ?? x.request) as ChatRequest).output.stop?.length ?? 0;
}
