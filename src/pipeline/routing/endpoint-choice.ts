// A provider may have several endpoints for one model: which of them is called.
import type { ChatRequest, ModelRequest } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";

/** The request that is routed. */
export interface RoutedRequest {
  readonly x: Exchange;
  /** As middleware changed it; absent: it is the client's own. */
  readonly rewrittenRequest?: ModelRequest | undefined;
  /** Nothing is sent, and the request has no content. */
  readonly hypothetical?: object;
}

/**
 * One candidate for each provider, model, and credential: the first endpoint whose format takes all stop sequences of the request.
 * Cutting the response at them is for requests that no endpoint can take as they are.
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

/** passthrough mode and native endpoints have no codec that would cut. */
function maxStopSequences({ mode, "~": { endpoint } }: HostCandidate): number {
  return (
    (mode === "translated" ? endpoint.protocol?.client?.maxStopSequences : undefined) ?? Infinity
  );
}

/** Read only where it decides: it may be the first to decode the request. */
function countStopSequences({ x, rewrittenRequest, hypothetical }: RoutedRequest): number {
  if (hypothetical || x.operation !== "chat" || x.actionType !== "generate") return 0;
  return ((rewrittenRequest ?? x.request) as ChatRequest).output.stop?.length ?? 0;
}
