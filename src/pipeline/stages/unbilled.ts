// Runs token counts and by-ID operations. They cost no money, but they count against a key's
// request limits.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { getFault } from "../../model/error.ts";
import { writeSettleRow, waitForRow } from "../metering/settle-call.ts";
import type { HostCall } from "../exchange/call.ts";
import { reserveUnbilled } from "../metering/charges.ts";

/** Runs `work` with a ledger row: reserved before, settled afterwards, without a price. */
export async function runUnbilled<T>(call: HostCall, work: () => Promise<T>): Promise<T> {
  await reserveUnbilled(call);
  const startedAt = performance.now();
  const addExternalWait = () =>
    (call.exchange.state.connection.externalWaitMs += performance.now() - startedAt);
  try {
    const got = await work();
    addExternalWait();
    await settleUnbilled(call, "ok");
    return got;
  } catch (problem) {
    addExternalWait();
    await settleUnbilled(call, getFault(problem)?.kind ?? "internal");
    throw problem;
  }
}

function settleUnbilled(call: HostCall, outcome: string): Promise<void> {
  const total = Math.round(performance.now() - call.startedAt);
  return waitForRow(
    writeSettleRow(
      call,
      {
        do: "settle",
        at: wallClock(),
        attempt: call.attemptId,
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
