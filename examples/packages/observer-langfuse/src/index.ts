import { setTimeout as sleep } from "node:timers/promises";
import { defineObserver, type Json, type RequestRecord } from "tollgate/plugin";

/** One of a batch, as Langfuse's ingestion API takes it: the id of the event is what it is known again by. */
interface Event {
  readonly id: string;
  readonly type: "trace-create" | "generation-create";
  readonly timestamp: string;
  readonly body: { readonly [name: string]: Json | undefined };
}

const MOST = 200;
const QUEUE = 20_000;
const PATIENCE_MS = 4_000;
const LONGEST_PAUSE_MS = 60_000;

const iso = (ms: number): string => new Date(ms).toISOString();
/** One trace a request, one generation a call. No word of a prompt or an answer is in a record, so none is in these. */
function* eventsOf(record: RequestRecord): Generator<Event> {
  const began = record.at - record.ms;
  const event = (type: Event["type"], id: string, body: Event["body"]): Event => ({
    id: `${id}-${type}`,
    type,
    timestamp: iso(record.at),
    body: { id, ...body },
  });
  yield event("trace-create", record.id, {
    timestamp: iso(began),
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
    const from = began + call.startMs;
    const end = call.n === record.calls.length ? record.outcome : "ok";
    const failed = call.fault?.code ?? call.fault?.kind ?? (end === "ok" ? undefined : end);
    yield event("generation-create", `${record.id}-${call.n}`, {
      traceId: record.id,
      name: `${call.provider}/${call.model}`,
      startTime: iso(from),
      ...(call.ms.firstToken !== undefined && {
        completionStartTime: iso(from + call.ms.firstToken),
      }),
      endTime: iso(from + call.ms.total),
      model: call.model,
      usageDetails: { ...call.usage } as Json,
      ...(call.costNano !== null && { costDetails: { total: Number(call.costNano) / 1e9 } }),
      level: failed === undefined ? "DEFAULT" : "ERROR",
      statusMessage: failed,
      metadata: { state: call.state, credential: call.credential, lane: call.mode },
    });
  }
}

export default defineObserver({
  api: 1,
  name: "langfuse",
  summary: "Traces, counts and costs in Langfuse, without a word of what was said",
  // Langfuse keeps traces until they are deleted. Of private requests it is told no labels.
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
        description: "Where Langfuse is: a region of its cloud, or your own",
      },
      public_key: { type: "string", minLength: 1, description: "Of the project" },
      secret_key: { type: "string", minLength: 1, "x-secret": true, description: "Of the project" },
      retry_ms: {
        type: "integer",
        minimum: 1,
        default: 1_000,
        description: "How soon it is tried again",
      },
    },
  },
  setup({ url, public_key, secret_key, retry_ms }, ctx) {
    const address = `${url.replace(/\/+$/, "")}/api/public/ingestion`;
    const basic = Buffer.from(`${public_key}:${secret_key}`).toString("base64");
    // It outlives a reload.
    const queue = ctx.shared("queue", () => ({ waiting: [] as Event[] }));
    let going: Promise<void> | undefined;
    const leaving = new AbortController();

    /** Which of them wait for another time: all where Langfuse is away, else those that it could not take just now. */
    async function post(batch: readonly Event[]): Promise<readonly Event[]> {
      try {
        const answer = await ctx.fetch(address, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Basic ${basic}` },
          body: JSON.stringify({ batch }),
          signal: AbortSignal.timeout(PATIENCE_MS),
        });
        if (!answer.ok) throw new Error(`it answers ${answer.status}`);
        const { errors = [] } = (await answer.json()) as {
          errors?: { id: string; status: number }[];
        };
        const later = new Set(
          errors.filter((e) => e.status >= 500 || e.status === 429).map((e) => e.id),
        );
        if (errors.length > 0)
          ctx.log.warn({ errors: errors.length }, "Langfuse has not taken some events");
        return batch.filter(({ id }) => later.has(id));
      } catch (error) {
        ctx.log.warn({ error, waiting: queue.waiting.length }, "Langfuse takes no events");
        return batch;
      }
    }

    async function drain(): Promise<void> {
      for (let pause = retry_ms; queue.waiting.length > 0;) {
        const batch = queue.waiting.splice(0, MOST);
        const later = await post(batch);
        queue.waiting.unshift(...later);
        if (later.length === 0) pause = retry_ms;
        else if (leaving.signal.aborted) return;
        else {
          await sleep(pause, undefined, { signal: leaving.signal, ref: false }).catch(() => {});
          pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
        }
      }
    }

    return {
      // Not waited for: an observer that is busy is told less.
      onRequests(batch) {
        for (const record of batch) queue.waiting.push(...eventsOf(record));
        const lost = queue.waiting.splice(0, queue.waiting.length - QUEUE).length;
        if (lost > 0)
          ctx.log.warn({ lost }, "there is no room for more that Langfuse has not taken");
        going ??= drain().finally(() => (going = undefined));
      },
      async flush() {
        leaving.abort();
        await going;
        await drain();
      },
    };
  },
});
