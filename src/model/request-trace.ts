// Trace context of a request.
import type { Opt } from "./values.ts";

/**
 * Position of a request in a trace, as defined by W3C Trace Context. The trace is the client's, or
 * starts with this request. Every request has one, whether or not it is sampled. IDs are in
 * lower-case hex.
 */
export type RequestTrace = Readonly<{
  /** ID of the trace, 32 digits. */
  traceId: string;
  /** Span ID of the request itself, 16 digits. */
  spanId: string;
  /**
   * Span ID of the client's span, which is the parent of the request. Undefined if the request
   * starts the trace.
   */
  parentId?: Opt<string>;
  /** Whether the client samples the trace. Undefined if the client sent no trace. */
  sampled?: Opt<boolean>;
  /**
   * The client's `tracestate`, text of up to 512 characters that the client controls. Not set for
   * private requests if the observer sends its records elsewhere.
   */
  state?: Opt<string>;
}>;
