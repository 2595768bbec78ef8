import type { Fault } from "../model/error.ts";
import type { FinishReason } from "../model/event.ts";
import type { ForwardingMode } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";
import type { CallRecord } from "./call.ts";

/**
 * How a request ended. Every `settle` hook receives it once, when the response has been sent and
 * the last ledger row is durable. If the ledger takes longer than 2 s for that row, the hooks are
 * called without waiting for it.
 */
export type Outcome = Readonly<{
  /** HTTP status that the client received; 499 if the client disconnected before. */
  status: number;
  /** Whether bytes were forwarded unchanged or translated; null if no provider was called. */
  mode: ForwardingMode | null;
  /** Calls of the request, in order. */
  calls: readonly CallRecord[];
  /** Whether a middleware answered with a recorded response. */
  cached: boolean;
  /** Finish reason of the response. Unset if there was none. */
  finish?: Opt<FinishReason>;
  /** Reason for the failure of the request. Unset if it succeeded. */
  fault?: Opt<Fault>;
  /** Fields that translation dropped or approximated. */
  losses: readonly { field: string; how: string; code: string }[];
  /** Bytes of the response body that were sent to the client. */
  bytesOut: number;
  /** Duration from the first byte of the request to its end, in milliseconds. */
  ms: number;
}>;
