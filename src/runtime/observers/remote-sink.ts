// Sends a worker's records and events to the observers in the primary, in batches.
import { BatchQueue } from "../../lib/queue/batch-queue.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import type { IpcLink } from "../workers/ipc-link.ts";
import { FLUSH_INTERVAL_MS, type ObserverSink } from "./observer-hub.ts";
import { MAX_BATCH } from "./observer-subscriber.ts";

export interface RemoteSink extends ObserverSink {
  /** Sends the pending records immediately, because this process is ending. */
  flush(): void;
}

export function createRemoteSink(link: () => Pick<IpcLink, "notify">): RemoteSink {
  const schedule = { delayMs: FLUSH_INTERVAL_MS, fullAt: MAX_BATCH, batchItems: MAX_BATCH };
  const records = new BatchQueue<ObservedRequest>({
    ...schedule,
    deliver: (batch) => link().notify("reportRequest", batch),
  });
  const refusals = new BatchQueue<RejectedRequest>({
    ...schedule,
    deliver: (batch) => link().notify("reportRejection", batch),
  });
  return {
    reportRequest: (record) => void records.push(record),
    reportRejection: (refusal) => void refusals.push(refusal),
    reportEvent: (notice) => link().notify("reportEvent", notice),
    // The primary receives the store's results and delivers these events itself.
    deliverEvent: async () => true,
    // The primary makes the batches of all processes durable, so it reports the commits.
    reportCommit() {},
    processExited() {},
    droppedCounts: () => ({}),
    attach() {},
    detach: async () => {},
    flush() {
      for (const queue of [records, refusals]) void queue.drain();
    },
  };
}
