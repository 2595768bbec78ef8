// Where a request stands in a trace, and what of that a provider is told.
import type { IncomingHttpHeaders } from "node:http";
import {
  childSpanId,
  newSpanId,
  newTraceId,
  readParent,
  readState,
  writeParent,
} from "../lib/trace-context.ts";
import type { HeadersOut } from "../model/values.ts";
import type { RequestTrace } from "../plugin/observer.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type { HostCandidate } from "./mounted.ts";

/** Its client's trace goes on; a request that brings none begins one. */
export function traceOf(headers: IncomingHttpHeaders): RequestTrace {
  const spanId = newSpanId();
  const parent = readParent(headers["traceparent"]);
  if (!parent) return { traceId: newTraceId(), spanId };
  const { traceId, spanId: parentId, sampled } = parent;
  const state = readState(headers["tracestate"]);
  return { traceId, spanId, parentId, sampled, ...(state !== undefined && { state }) };
}

export const spanOfCall = ({ spanId }: RequestTrace, n: number): string => childSpanId(spanId, n);

/** As much of a call as its headers are made of. */
interface TracedCall {
  readonly n: number;
  readonly candidate: HostCandidate;
  readonly exchange: Pick<Exchange, "op" | "privacy"> & { readonly trace: RequestTrace };
}

const NOTHING: HeadersOut = Object.freeze({});

/**
 * The trace's headers for one call: where the operator hands it on, and never of a private request. What the provider makes of it
 * is a part of our call. Token counts and by-id operations have no span of their own, so there it is a part of the request.
 */
export function traceHeaders({ n, candidate, exchange: x }: TracedCall): HeadersOut {
  if (candidate["~"].provider.trace !== "forward" || x.privacy !== "off") return NOTHING;
  const { traceId, spanId, sampled = true, state } = x.trace;
  const parent = x.op === "generate" ? spanOfCall(x.trace, n) : spanId;
  return {
    traceparent: writeParent({ traceId, spanId: parent, sampled }),
    ...(state !== undefined && { tracestate: state }),
  };
}
