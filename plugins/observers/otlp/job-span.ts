// Encodes a job that ended as a span. It starts a separate trace, because it may run for a day, and
// is linked to the request that created it.
import { createHash } from "node:crypto";
import type { GatewayEvent } from "tollgate/plugin";
import { Attributes, Time } from "./attributes.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

export type JobEnded = Extract<GatewayEvent, { readonly type: "job_ended" }>;

const INTERNAL_KIND = 1;
const ERROR_STATUS = { code: 2 };
const SAMPLED_FLAG = 1;

/** Returns the span of a job. Its IDs follow from that of the job, so a repetition has the same. */
export function jobSpan(job: JobEnded, { keys }: { readonly keys: boolean }): ProtobufMessage {
  const ids = createHash("sha256").update(`${job.kind}\0${job.job}`).digest("hex");
  const trace = job.origin?.trace;
  const attributes = new Attributes()
    .add("tollgate.job.id", job.job)
    .add("tollgate.job.kind", job.kind)
    .add("tollgate.job.status", job.status)
    .add("tollgate.model", job.model ?? undefined)
    .add("tollgate.cost.usd", job.costUsd ?? undefined)
    .add("tollgate.request.id", job.origin?.request);
  if (keys)
    attributes.add("tollgate.key.id", job.key).add("tollgate.account", job.account ?? undefined);
  return {
    traceId: ids.slice(0, 32),
    spanId: ids.slice(32, 48),
    name: `job ${job.kind}`,
    kind: INTERNAL_KIND,
    startTimeUnixNano: new Time(job.createdAt),
    endTimeUnixNano: new Time(Math.max(job.at, job.createdAt)),
    attributes,
    links: trace ? [{ traceId: trace.traceId, spanId: trace.spanId }] : undefined,
    status: job.status === "failed" ? ERROR_STATUS : undefined,
    flags: SAMPLED_FLAG,
  };
}
