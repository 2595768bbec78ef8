// What `fastest` goes by: how long the calls of its requests take, measured where they are made.
import type { HostCall } from "../call.ts";
import type { Plan } from "../stations/route.ts";

/** This call is asked, and the other candidates are not. */
export function begins({ candidates, resolution }: Plan, call: HostCall): void {
  if (!resolution.choice?.times) return;
  for (const candidate of candidates) {
    const latency = candidate["~"].target.timed(call.exchange.stream);
    if (candidate !== call.candidate) latency.passed();
    else (call.latency = latency).begins(call.started);
  }
}

/** This call is made beside another one, in place of none. */
export function joins({ resolution }: Plan, call: HostCall): void {
  if (!resolution.choice?.times) return;
  const { target } = call.candidate["~"];
  (call.latency = target.timed(call.exchange.stream)).begins(call.started);
}

/** Without content, if it was not there before. */
export function ended(call: HostCall): void {
  const now = performance.now();
  call.latency?.ended(now, now - call.started);
  call.latency = undefined;
}
