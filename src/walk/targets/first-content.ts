// The first content of a call says more than its end: how fast its target is, and that it answers again.
import { clientOf } from "../candidates/client-retries.ts";
import type { HostCall } from "../call.ts";
import type { Tally } from "../money/tally.ts";

/** Said of each piece of content; the first one counts. */
export function contentCame(call: HostCall, tally: Tally): void {
  if (tally.contentMs !== undefined) return;
  const now = performance.now();
  tally.contentMs = Math.round(now - call.started);
  call.latency?.answered(now, now - call.started);
  call.latency = undefined;
  // Others need not wait for the end of the answer that was asked for to see whether there is one.
  if (call.pass === "plain") return;
  call.worked = true;
  const { exchange: x } = call;
  x["~"].gen.rests.answered(call.candidate, call.started, clientOf(x));
}
