// Where a request stands in a trace, and what of that a provider is told.
import type { IncomingHttpHeaders } from "node:http";
import {
  childSpanId,
  newSpanId,
  newTraceId,
  parseTraceparent,
  parseTracestate,
  formatTraceparent,
} from "../../lib/trace-context.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { RequestTrace } from "../../plugin/observer.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCandidate } from "./mounted.ts";

/** Its client's trace goes on; a request that brings none begins one. */
export function startTrace(headers: IncomingHttpHeaders): RequestTrace {
  const spanId = newSpanId();
  const parent = parseTraceparent(headers["traceparent"]);
  if (!parent) return { traceId: newTraceId(), spanId };
  const { traceId, spanId: parentId, sampled } = parent;
  const state = parseTracestate(headers["tracestate"]);
  return { traceId, spanId, parentId, sampled, ...(state !== undefined && { state }) };
}

export const callSpanId = ({ spanId }: RequestTrace, n: number): string => childSpanId(spanId, n);

/** As much of a call as its headers are made of. */
interface TraceableCall {
  readonly n: number;
  readonly candidate: HostCandidate;
  readonly exchange: Pick<Exchange, "actionType" | "privacy"> & { readonly trace: RequestTrace };
}

const NO_HEADERS: HeadersOut = Object.freeze({});

/**
 * The trace's headers for one call: where the operator hands it on, and never of a private request. What the provider makes of it
 * is a part of our call. Token counts and by-id operations have no span of their own, so there it is a part of the request.
 */
export function createTraceHeaders({ n, candidate, exchange: x }: TraceableCall): HeadersOut {
  if (candidate["~"].provider.traceMode !== "forward" || x.privacy !== "off") return NO_HEADERS;
  const { traceId, spanId, sampled = true, state } = x.trace;
  const parent = x.actionType === "generate" ? callSpanId(x.trace, n) : spanId;
  return {
    traceparent: formatTraceparent({ traceId, spanId: parent, sampled }),
    ...(state !== undefined && { tracestate: state }),
  };
}
