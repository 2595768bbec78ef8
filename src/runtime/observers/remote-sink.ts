// Sends a worker's records and events to the observers in the primary, in batches.
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import type { IpcLink } from "../workers/ipc-link.ts";
import { FLUSH_INTERVAL_MS, type ObserverSink } from "./observer-hub.ts";
import { MAX_BATCH } from "./observer-subscriber.ts";

export interface RemoteSink extends ObserverSink {
  /** Sends the pending records now, because this process ends. */
  flush(): void;
}

export function createRemoteSink(link: () => Pick<IpcLink, "notify">): RemoteSink {
  let records: ObservedRequest[] = [];
  let refusals: RejectedRequest[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (records.length > 0) link().notify("reportRequest", records);
    if (refusals.length > 0) link().notify("reportRejection", refusals);
    records = [];
    refusals = [];
  };
  const soon = (waiting: number) => {
    if (waiting >= MAX_BATCH) flush();
    else timer ??= setTimeout(flush, FLUSH_INTERVAL_MS).unref();
  };
  return {
    reportRequest: (record) => soon(records.push(record)),
    reportRejection: (refusal) => soon(refusals.push(refusal)),
    reportEvent: (notice) => link().notify("reportEvent", notice),
    // The primary receives the store's results and delivers these events itself.
    deliverEvent: async () => true,
    // Batches of all processes become durable in the primary.
    reportCommit() {},
    processExited() {},
    droppedCounts: () => ({}),
    attach() {},
    detach: async () => {},
    flush,
  };
}
