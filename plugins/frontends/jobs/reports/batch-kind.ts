// Describes batches for operators, and reports how they ended.
import type { JobDescription, JobKind, JobRecord, JobStatus } from "tollgate/plugin";
import { BATCH_KIND, parseBatch, progressOf, type BatchState } from "../batch-record.ts";
import type { BatchService } from "../batch-service.ts";

const STATUS: Readonly<Record<BatchState, JobStatus>> = {
  reserving: "queued",
  running: "running",
  canceling: "canceling",
  reading: "running",
  finishing: "running",
  completed: "completed",
  failed: "failed",
  expired: "expired",
  canceled: "canceled",
};

/** Events of OpenAI's webhooks. */
const EVENTS: { readonly [S in JobStatus]?: string } = {
  completed: "batch.completed",
  failed: "batch.failed",
  expired: "batch.expired",
  canceled: "batch.cancelled",
};

export const createBatchKind = (batches: BatchService): JobKind => ({
  kind: BATCH_KIND,
  openStates: ["reserving", "running", "canceling", "reading", "finishing"],
  describe: describeBatch,
  cancel: (record) => batches.cancelBatch(parseBatch(record)),
});

function describeBatch(record: JobRecord): JobDescription | undefined {
  const batch = parseBatch(record);
  const { state, format, model, batches, times, errors, origin } = batch;
  if (state === "reserving") return undefined;
  const isUnsent = state === "running" && batches.every((one) => one.state === "planned");
  const status = isUnsent ? "queued" : STATUS[state];
  const prefix = format === "anthropic" ? "msgbatch" : "batch";
  return {
    id: `${prefix}_${record.id}`,
    status,
    model,
    providers: [...new Set(batches.map(({ target }) => target.provider))],
    progress: progressOf(batch),
    costNano: batch.costNano === undefined ? undefined : BigInt(batch.costNano),
    endedAt: EVENTS[status] === undefined ? undefined : times[state],
    message: errors?.[0]?.message ?? batches.find((one) => one.message !== undefined)?.message,
    origin,
    event: EVENTS[status],
  };
}
