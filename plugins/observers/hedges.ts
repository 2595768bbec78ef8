// Hedged calls of a request. A record contains both calls of a hedge: the second call is marked
// `hedge`, and the unused call has the error code `hedge_lost`.
import type { RequestRecord, RequestRecordCall } from "tollgate/plugin";

export type HedgeResult = "won" | "lost" | "failed";

const HEDGE_LOST = "hedge_lost";

/** Whether this call was canceled because the other call of the hedge responded first. */
export const hasLost = ({ fault }: RequestRecordCall): boolean => fault?.code === HEDGE_LOST;

/**
 * Returns the result of a hedge, or undefined if the call is not a hedge and did not lose to one.
 */
export const hedgeResult = (call: RequestRecordCall): HedgeResult | undefined =>
  hasLost(call) ? "lost" : !call.hedge ? undefined : call.fault ? "failed" : "won";

/**
 * Returns the calls in sequence, each of which was made after the previous one failed. Hedges are
 * omitted, unless they were used for the response.
 */
export const sequentialCalls = (calls: RequestRecord["calls"]): RequestRecord["calls"] =>
  calls.filter((call, i) => i === calls.length - 1 || !(call.hedge || hasLost(call)));
