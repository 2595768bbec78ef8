// What `fastest` goes by: how long the calls of its requests take, measured where they are made.
import type { HostCall } from "../exchange/call.ts";
import type { RoutePlan } from "../stages/route.ts";

/** This call is asked, and the other candidates are not. */
export function startTiming({ candidates, resolution }: RoutePlan, call: HostCall): void {
  if (!resolution.routingRule?.usesLatency) return;
  for (const candidate of candidates) {
    const latency = candidate["~"].target.latencyOf(call.exchange.stream);
    if (candidate !== call.candidate) latency.recordSkip();
    else (call.latency = latency).recordStart(call.startedAt);
  }
}

/** This call is made beside another one, in place of none. */
export function startHedgeTiming({ resolution }: RoutePlan, call: HostCall): void {
  if (!resolution.routingRule?.usesLatency) return;
  const { target } = call.candidate["~"];
  (call.latency = target.latencyOf(call.exchange.stream)).recordStart(call.startedAt);
}

/** Without content, if it was not there before. */
export function endTiming(call: HostCall): void {
  const now = performance.now();
  call.latency?.recordEndWithoutContent(now, now - call.startedAt);
  call.latency = undefined;
}
