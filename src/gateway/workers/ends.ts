// What becomes of a worker that has ended: it is told, and what it had open is settled.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Services } from "../services/services.ts";
import type { Member } from "./worker-handle.ts";

export function tellEnd(
  { log, observing }: Services,
  { place, pid, holds }: Member,
  how: string,
): void {
  const of = { worker: place, pid, how, calls: holds.size };
  log.error(of, "a worker has ended; what it had open is settled as estimated");
  observing.told({ type: "worker_gone", at: wallClock(), ...of });
}

/** As recovery would: from what is known of each call. */
export async function settleLeft({ ledger, log }: Services, { holds }: Member): Promise<void> {
  for (const call of await holds.left(wallClock()))
    ledger.settle(call).catch((error: unknown) => {
      log.error({ err: error, attempt: call.attempt }, "a call could not be settled");
    });
}
