// Handles the end of a worker: logs it, and settles its open calls.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Services } from "../services.ts";
import type { WorkerHandle } from "./worker-handle.ts";

export function reportWorkerExit(
  { log, observerSink }: Services,
  { slot, pid, reservations }: WorkerHandle,
  how: string,
): void {
  const of = { worker: slot, pid, exitReason: how, openCalls: reservations.size };
  log.error(of, "worker exited, its open calls settled as estimated");
  observerSink.reportEvent({ type: "worker_exited", at: wallClock(), ...of });
}

/** Settles the open calls as recovery would, from what is known of each call. */
export async function settleOpenReservations(
  { ledgerQueue, log }: Services,
  { reservations }: WorkerHandle,
): Promise<void> {
  for (const call of await reservations.settleAll(wallClock()))
    ledgerQueue.settle(call).catch((error: unknown) => {
      log.error({ err: error, attempt: call.attempt }, "call settlement failed");
    });
}
