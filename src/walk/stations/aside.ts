// Token counts and by-id operations. They cost no money, but they are requests: a key's limits on requests count them.
import { wallClock } from "../../lib/wall-clock.ts";
import { faultOf } from "../../model/error.ts";
import { billed, inTime } from "../money/bill.ts";
import type { HostCall } from "../call.ts";
import { reserveAside } from "../money/charges.ts";

/** One row in the ledger around it: reserved before, settled after, without a price. */
export async function aside<T>(call: HostCall, work: () => Promise<T>): Promise<T> {
  await reserveAside(call);
  const asked = performance.now();
  const away = () => (call.exchange["~"].awayMs += performance.now() - asked);
  try {
    const got = await work();
    away();
    await over(call, "ok");
    return got;
  } catch (problem) {
    away();
    await over(call, faultOf(problem)?.kind ?? "internal");
    throw problem;
  }
}

function over(call: HostCall, outcome: string): Promise<void> {
  const total = Math.round(performance.now() - call.started);
  return inTime(
    billed(
      call,
      {
        do: "settle",
        at: wallClock(),
        attempt: call.attempt,
        state: outcome === "ok" ? "exact" : "void",
        usage: {},
        costNano: 0n,
        outcome,
        ms: { total },
      },
      [],
    ),
  );
}
