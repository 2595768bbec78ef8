import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineObserver, type RequestRecord } from "tollgate/plugin";

/** What one POST may hold. */
const MOST = 100;
/** Of records that wait while the receiver is away; the oldest go first. */
const QUEUE = 10_000;
const PATIENCE_MS = 4_000;
const LONGEST_PAUSE_MS = 60_000;

/** As it goes out: counts and names, money as text, since no JSON number holds it to the last digit. */
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

/** null: a call of it has no known price. */
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
  summary: "Posts what became of requests to an address, signed",
  // Whose it is and what it keeps is not known here. Of private requests it is told no labels.
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url", "secret"],
    properties: {
      url: { type: "string", format: "uri", "x-origin": true, description: "Where it is posted" },
      secret: {
        type: "string",
        minLength: 16,
        "x-secret": true,
        description: "What it is signed with",
      },
      outcomes: {
        type: "array",
        minItems: 1,
        uniqueItems: true,
        items: {
          enum: ["ok", "client_error", "refused", "upstream_error", "error", "canceled"],
        },
        default: ["refused", "upstream_error", "error"],
        description: "Which ends of a request are told",
      },
      retry_ms: {
        type: "integer",
        minimum: 1,
        default: 1_000,
        description: "How soon it is tried again the first time; twice as long each time after",
      },
    },
  },
  setup({ url, secret, outcomes, retry_ms }, ctx) {
    const told = new Set<string>(outcomes);
    // It outlives a reload: what waits is not lost with a generation.
    const queue = ctx.shared("queue", () => ({ waiting: [] as RequestRecord[], lost: 0 }));
    let going: Promise<void> | undefined;
    const leaving = new AbortController();

    /** Undefined: it was taken. Otherwise why not: its words have no address, which may hold a secret. */
    async function post(id: string, body: string): Promise<string | undefined> {
      const at = Math.floor(Date.now() / 1000);
      const mac = createHmac("sha256", secret).update(`${id}.${at}.${body}`).digest("base64");
      try {
        const answer = await ctx.fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": String(at),
            "webhook-signature": `v1,${mac}`,
          },
          body,
          signal: AbortSignal.timeout(PATIENCE_MS),
        });
        await answer.body?.cancel();
        return answer.ok ? undefined : `it answers ${answer.status}`;
      } catch {
        return "the receiver is unreachable";
      }
    }

    /** All that waits, in its order. One that is told again has its id again, so that a receiver can pass it over. */
    async function drain(): Promise<void> {
      for (let pause = retry_ms; queue.waiting.length > 0;) {
        const batch = queue.waiting.slice(0, MOST);
        const why = await post(
          `${batch[0]!.id}-${batch.length}`,
          JSON.stringify(batch.map(eventOf)),
        );
        if (why === undefined) {
          queue.waiting = queue.waiting.filter((one) => !batch.includes(one));
          pause = retry_ms;
          continue;
        }
        ctx.log.warn({ why, waiting: queue.waiting.length }, "a webhook is not taken");
        if (leaving.signal.aborted) return;
        await sleep(pause, undefined, { signal: leaving.signal, ref: false }).catch(() => {});
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }

    const go = () => (going ??= drain().finally(() => (going = undefined)));
    return {
      // Not waited for: an observer that is busy is told less.
      onRequests(batch) {
        queue.waiting.push(...batch.filter(({ outcome }) => told.has(outcome)));
        queue.lost += queue.waiting.splice(0, queue.waiting.length - QUEUE).length;
        if (queue.waiting.length > 0) void go();
      },
      async flush() {
        leaving.abort();
        await going;
        await drain();
      },
      commands: {
        queue: {
          summary: "How many records wait, and how many were lost because there was no room",
          writes: false,
          run: async () => ({ waiting: queue.waiting.length, lost: queue.lost }),
        },
      },
    };
  },
});
