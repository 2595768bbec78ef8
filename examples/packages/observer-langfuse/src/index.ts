import { setTimeout as sleep } from "node:timers/promises";
import {
  BatchQueue,
  BoundedQueue,
  defineObserver,
  type Json,
  type RequestRecord,
} from "tollgate/plugin";

/** An event of Langfuse's ingestion API. Langfuse recognizes repeated events by their ID. */
interface Event {
  readonly id: string;
  readonly type: "trace-create" | "generation-create";
  readonly timestamp: string;
  readonly body: { readonly [name: string]: Json | undefined };
}

const MAX_BATCH = 200;
/** Maximum number of waiting events. The oldest are dropped first. */
const MAX_QUEUE = 20_000;
const TIMEOUT_MS = 4_000;
const MAX_BACKOFF_MS = 60_000;

const iso = (ms: number): string => new Date(ms).toISOString();
/** Yields one trace per request and one generation per call. Records contain no text of prompts or responses. */
function* eventsOf(record: RequestRecord): Generator<Event> {
  const startedAt = record.at - record.ms;
  const event = (type: Event["type"], id: string, body: Event["body"]): Event => ({
    id: `${id}-${type}`,
    type,
    timestamp: iso(record.at),
    body: { id, ...body },
  });
  yield event("trace-create", record.id, {
    timestamp: iso(startedAt),
    name: `${record.operation} ${record.action}`,
    userId: record.key,
    tags: [record.frontend, record.outcome],
    metadata: {
      model: record.model,
      status: record.status,
      account: record.account,
      ...record.labels,
    },
  });
  for (const call of record.calls) {
    const callStartedAt = startedAt + call.startMs;
    const end = call.n === record.calls.length ? record.outcome : "ok";
    const failed = call.fault?.code ?? call.fault?.kind ?? (end === "ok" ? undefined : end);
    yield event("generation-create", `${record.id}-${call.n}`, {
      traceId: record.id,
      name: `${call.provider}/${call.model}`,
      startTime: iso(callStartedAt),
      ...(call.ms.firstToken !== undefined && {
        completionStartTime: iso(callStartedAt + call.ms.firstToken),
      }),
      endTime: iso(callStartedAt + call.ms.total),
      model: call.model,
      usageDetails: { ...call.usage } as Json,
      ...(call.costNano !== null && { costDetails: { total: Number(call.costNano) / 1e9 } }),
      level: failed === undefined ? "DEFAULT" : "ERROR",
      statusMessage: failed,
      metadata: { state: call.state, credential: call.credential, mode: call.mode },
    });
  }
}

export default defineObserver({
  api: 1,
  name: "langfuse",
  summary: "Sends traces, usage, and costs to Langfuse, without prompts and responses",
  // Langfuse keeps traces until they are deleted. Records of private requests have no labels.
  sends: { retention: { kind: "until_deleted" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["public_key", "secret_key"],
    properties: {
      url: {
        type: "string",
        format: "uri",
        "x-origin": true,
        default: "https://cloud.langfuse.com",
        description: "Base URL of Langfuse: a region of its cloud, or your own server",
      },
      public_key: { type: "string", minLength: 1, description: "Public key of the project" },
      secret_key: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "Secret key of the project",
      },
      retry_ms: {
        type: "integer",
        minimum: 1,
        default: 1_000,
        description: "Delay before the first retry, in milliseconds. It doubles up to 60 s",
      },
    },
  },
  setup({ url, public_key, secret_key, retry_ms }, ctx) {
    const address = `${url.replace(/\/+$/, "")}/api/public/ingestion`;
    const basic = Buffer.from(`${public_key}:${secret_key}`).toString("base64");
    // The queue is kept across reloads.
    const queue = ctx.shared(
      "queue",
      () => new BoundedQueue<Event>({ maxItems: MAX_QUEUE, overflow: "drop_oldest" }),
    );
    const flushing = new AbortController();
    let backoff = retry_ms;

    /** Sends a batch. Returns the events to retry: all if Langfuse is unreachable, else those that failed temporarily. */
    async function post(batch: readonly Event[]): Promise<readonly Event[]> {
      try {
        const res = await ctx.fetch(address, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Basic ${basic}` },
          body: JSON.stringify({ batch }),
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        if (!res.ok) throw new Error(`status ${res.status}`);
        const { errors = [] } = (await res.json()) as {
          errors?: { id: string; status: number }[];
        };
        const temporary = new Set(
          errors.filter((e) => e.status >= 500 || e.status === 429).map((e) => e.id),
        );
        if (errors.length > 0)
          ctx.log.warn({ errors: errors.length }, "events rejected by Langfuse");
        return batch.filter(({ id }) => temporary.has(id));
      } catch (error) {
        ctx.log.warn({ error, waiting: queue.length }, "export to Langfuse failed");
        return batch;
      }
    }

    const batches = new BatchQueue<Event>({
      queue,
      batchItems: MAX_BATCH,
      delayMs: 0,
      async deliver(batch) {
        const retries = await post(batch);
        if (retries.length === 0) backoff = retry_ms;
        else {
          if (flushing.signal.aborted) batches.stop();
          await sleep(backoff, undefined, { signal: flushing.signal, ref: false }).catch(() => {});
          backoff = Math.min(2 * backoff, MAX_BACKOFF_MS);
        }
        return retries;
      },
    });

    return {
      // The function does not wait, because an observer that waits loses records.
      onRequests(records) {
        const before = queue.dropped;
        for (const record of records) for (const event of eventsOf(record)) batches.push(event);
        const dropped = queue.dropped - before;
        if (dropped > 0) ctx.log.warn({ dropped }, "queue is full, events dropped");
      },
      async flush() {
        flushing.abort();
        await batches.drain();
      },
    };
  },
});
