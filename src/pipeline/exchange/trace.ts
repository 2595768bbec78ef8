// Trace context of a request, and the trace headers that are sent to a provider.
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
import type { RequestTrace } from "../../model/request-trace.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { HostCandidate } from "./mounted.ts";

/**
 * Continues the client's trace. If the request has none, it joins the trace of its WebSocket, or
 * starts a new trace.
 */
export function startTrace(headers: IncomingHttpHeaders, session?: RequestTrace): RequestTrace {
  const spanId = newSpanId();
  const parent = parseTraceparent(headers["traceparent"]);
  if (!parent) return { traceId: session?.traceId ?? newTraceId(), spanId };
  const { traceId, spanId: parentId, sampled } = parent;
  const state = parseTracestate(headers["tracestate"]);
  return { traceId, spanId, parentId, sampled, ...(state !== undefined && { state }) };
}

export const callSpanId = ({ spanId }: RequestTrace, n: number): string => childSpanId(spanId, n);

/** The part of a call from which trace headers are created. */
interface TraceableCall {
  readonly n: number;
  readonly candidate: HostCandidate;
  readonly exchange: Pick<Exchange, "actionType" | "privacy"> & { readonly trace: RequestTrace };
}

const NO_HEADERS: HeadersOut = Object.freeze({});

/**
 * Returns the trace headers for one call. They are sent only if the operator enabled forwarding,
 * and never for a private request. The provider's spans become children of the call's span. Token
 * counts and by-ID operations have no separate span, so their children belong to the request's
 * span.
 */
export function createTraceHeaders({ n, candidate, exchange: x }: TraceableCall): HeadersOut {
  if (candidate.mounted.provider.traceMode !== "forward" || x.privacy !== "off") return NO_HEADERS;
  const { traceId, spanId, sampled = true, state } = x.trace;
  const parent = x.actionType === "generate" ? callSpanId(x.trace, n) : spanId;
  return {
    traceparent: formatTraceparent({ traceId, spanId: parent, sampled }),
    ...(state !== undefined && { tracestate: state }),
  };
}
