// Measures the latency of calls for the `fastest` strategy.
import type { HostCall } from "../exchange/call.ts";
import type { RoutePlan } from "../stages/route.ts";

/** Starts the measurement of a call, and records that the other candidates were skipped. */
export function startTiming({ candidates, resolution }: RoutePlan, call: HostCall): void {
  if (!resolution.routingRule?.usesLatency) return;
  for (const candidate of candidates) {
    const latency = candidate.mounted.target.latencyOf(call.exchange.stream);
    if (candidate !== call.candidate) latency.recordSkip();
    else (call.latency = latency).recordStart(call.startedAt);
  }
}

/**
 * Starts the measurement of a hedge. A hedge replaces no other candidate, so none counts as
 * skipped.
 */
export function startHedgeTiming({ resolution }: RoutePlan, call: HostCall): void {
  if (!resolution.routingRule?.usesLatency) return;
  const { target } = call.candidate.mounted;
  (call.latency = target.latencyOf(call.exchange.stream)).recordStart(call.startedAt);
}

/** Ends the measurement of a call that has not returned content. */
export function endTiming(call: HostCall): void {
  const now = performance.now();
  call.latency?.recordEndWithoutContent(now, now - call.startedAt);
  call.latency = undefined;
}
