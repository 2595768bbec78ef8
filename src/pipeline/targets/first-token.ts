// The first content of a call says more than its end: how fast its target is, and that it answers again.
import { clientKey } from "../exchange/client-retries.ts";
import type { HostCall } from "../exchange/call.ts";
import type { CallTally } from "../metering/call-tally.ts";

/** Said of each piece of content; the first one counts. */
export function recordFirstToken(call: HostCall, tally: CallTally): void {
  if (tally.firstTokenMs !== undefined) return;
  const now = performance.now();
  tally.firstTokenMs = Math.round(now - call.startedAt);
  call.latency?.recordFirstToken(now, now - call.startedAt);
  call.latency = undefined;
  // Others need not wait for the end of the answer that was asked for to see whether there is one.
  if (call.reason === "plain") return;
  call.hasReportedSuccess = true;
  const { exchange: x } = call;
  x["~"].gen.targetHealth.recordSuccess(call.candidate, call.startedAt, clientKey(x));
}
