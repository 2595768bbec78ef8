import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { BatchQueue, BoundedQueue, defineObserver, type RequestRecord } from "tollgate/plugin";

/** Maximum number of records in a request. */
const MAX_BATCH = 100;
/** Maximum number of waiting records. The oldest are dropped first. */
const MAX_QUEUE = 10_000;
const TIMEOUT_MS = 4_000;
const MAX_BACKOFF_MS = 60_000;

/** Encodes a record. Amounts are strings, because JSON numbers are not exact. */
const eventOf = (record: RequestRecord) => ({
  type: `request.${record.outcome}`,
  id: record.id,
  at: new Date(record.at).toISOString(),
  key: record.key,
  account: record.account,
  model: record.model,
  served: record.served,
  status: record.status,
  error: record.fault?.code ?? record.fault?.kind,
  labels: record.labels,
  ms: Math.round(record.ms),
  usage: record.calls.at(-1)?.usage,
  cost_nano_usd: costOf(record),
});

/** Returns the total cost in nano-dollars; null if the price of a call is unknown. */
function costOf({ calls }: RequestRecord): string | null {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null) return null;
    sum += costNano;
  }
  return String(sum);
}

export default defineObserver({
  api: 1,
  name: "webhook",
  summary: "Sends request records to a URL as signed webhooks",
  // The data policy of the receiver is unknown. Records of private requests have no labels.
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url", "secret"],
    properties: {
      url: { type: "string", format: "uri", "x-origin": true, description: "URL of the receiver" },
      secret: {
        type: "string",
        minLength: 16,
        "x-secret": true,
        description: "Secret for the signature",
      },
      outcomes: {
        type: "array",
        minItems: 1,
        uniqueItems: true,
        items: {
          enum: ["ok", "client_error", "refused", "upstream_error", "error", "canceled"],
        },
        default: ["refused", "upstream_error", "error"],
        description: "Outcomes to send",
      },
      retry_ms: {
        type: "integer",
        minimum: 1,
        default: 1_000,
        description: "Delay before the first retry, in milliseconds. It doubles up to 60 s",
      },
    },
  },
  setup({ url, secret, outcomes, retry_ms }, ctx) {
    const selected = new Set<string>(outcomes);
    // Kept across reloads, so that waiting records are not lost.
    const queue = ctx.shared(
      "queue",
      () => new BoundedQueue<RequestRecord>({ maxItems: MAX_QUEUE, overflow: "drop_oldest" }),
    );
    const flushing = new AbortController();
    let backoff = retry_ms;

    /** Returns undefined on success, else the reason. The reason has no URL, which may contain a secret. */
    async function post(id: string, body: string): Promise<string | undefined> {
      const at = Math.floor(Date.now() / 1000);
      const mac = createHmac("sha256", secret).update(`${id}.${at}.${body}`).digest("base64");
      try {
        const res = await ctx.fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": String(at),
            "webhook-signature": `v1,${mac}`,
          },
          body,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        await res.body?.cancel();
        return res.ok ? undefined : `status ${res.status}`;
      } catch {
        return "the receiver is unreachable";
      }
    }

    /** Sends the waiting records in order. A retry has the same ID, so a receiver can ignore duplicates. */
    const batches = new BatchQueue<RequestRecord>({
      queue,
      batchItems: MAX_BATCH,
      delayMs: 0,
      async deliver(batch) {
        const reason = await post(
          `${batch[0]!.id}-${batch.length}`,
          JSON.stringify(batch.map(eventOf)),
        );
        if (reason === undefined) {
          backoff = retry_ms;
          return undefined;
        }
        ctx.log.warn({ reason, waiting: queue.length + batch.length }, "webhook delivery failed");
        if (flushing.signal.aborted) batches.stop();
        await sleep(backoff, undefined, { signal: flushing.signal, ref: false }).catch(() => {});
        backoff = Math.min(2 * backoff, MAX_BACKOFF_MS);
        return batch;
      },
    });

    return {
      // The function does not wait, because an observer that waits loses records.
      onRequests(batch) {
        for (const record of batch) if (selected.has(record.outcome)) batches.push(record);
      },
      async flush() {
        flushing.abort();
        await batches.drain();
      },
      commands: {
        queue: {
          summary: "Show the number of waiting and dropped records",
          writes: false,
          run: async () => ({ waiting: queue.length, dropped: queue.dropped }),
        },
      },
    };
  },
});
