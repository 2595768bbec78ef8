// Hedged calls of a request. Both calls are in its record: the second one is marked `hedge`, and the losing one has the fault code
// `hedge_lost`.
import type { RequestRecord, RequestRecordCall } from "tollgate/plugin";

export type HedgeResult = "won" | "lost" | "failed";

const HEDGE_LOST = "hedge_lost";

/** Whether the other call of the hedge answered, so that this one was canceled. */
export const hasLost = ({ fault }: RequestRecordCall): boolean => fault?.code === HEDGE_LOST;

/** Result of a hedge. Undefined for a call that is not a hedge and did not lose to one. */
export const hedgeResult = (call: RequestRecordCall): HedgeResult | undefined =>
  hasLost(call) ? "lost" : !call.hedge ? undefined : call.fault ? "failed" : "won";

/** Calls in sequence: each was made after the one before had failed. Hedges are left out, except one that answered last. */
export const sequentialCalls = (calls: RequestRecord["calls"]): RequestRecord["calls"] =>
  calls.filter((call, i) => i === calls.length - 1 || !(call.hedge || hasLost(call)));
