// Spans, metrics and logs to an OpenTelemetry collector, by OTLP over HTTP. What it writes is made from records alone, so no word
// of a prompt or an answer can be in it.
import { defineObserver, type Context, type RequestRecord } from "tollgate/plugin";
import { SPELLINGS, spellingsOf } from "./genai.ts";
import { Batches, type BatchCounts } from "./otlp/batches.ts";
import { sayNotice, sayRefusal, sayRequest, telling } from "./otlp/logs.ts";
import { Post } from "./otlp/post.ts";
import { pushing } from "./otlp/push.ts";
import { keeps, SAMPLERS } from "./otlp/sampler.ts";
import {
  addressesOf,
  PROTOCOLS,
  settingsOf,
  SIGNALS,
  VARIABLES,
  type OtlpSettings,
} from "./otlp/settings.ts";
import { saySpans, spansOf } from "./otlp/spans.ts";
import type { Signal } from "./otlp/shapes.ts";

const texts = (description: string, more: object = {}) =>
  ({ type: "object", additionalProperties: { type: "string", ...more }, description }) as const;
const most = (description: string, maximum: number) =>
  ({ type: "integer", minimum: 1, maximum, description }) as const;
const LONGEST = 2 ** 31 - 1;

export default defineObserver({
  api: 1,
  name: "otlp",
  summary: "Traces, metrics and logs to an OpenTelemetry collector",
  stability: "beta",
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  needs: { env: VARIABLES, origins: addressesOf },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      endpoint: {
        type: "string",
        pattern: "^https?://",
        "x-expects": "an address such as http://127.0.0.1:4318",
        "x-origin": true,
        description:
          "Where the collector listens; /v1/traces and the like are put behind it. If absent OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318",
      },
      signals: {
        type: "array",
        items: { enum: SIGNALS },
        uniqueItems: true,
        description: "What is sent; all three if absent, but for what OTEL_*_EXPORTER says is none",
      },
      protocol: { enum: PROTOCOLS, description: "http/protobuf if absent" },
      compression: {
        enum: ["gzip", "none"],
        description: "gzip if absent, none to a collector on this machine",
      },
      headers: texts("Sent along, such as a token", { "x-secret": true }),
      timeout_ms: most("How long one post may take; 10000 if absent", LONGEST),
      retry_ms: {
        ...most(
          "How long one batch is tried again while the collector has no room for it",
          LONGEST,
        ),
        default: 120_000,
      },
      sampler: {
        enum: SAMPLERS,
        description:
          "Which requests become spans; parentbased_traceidratio if absent. Failures, second attempts and slow ones do under each but always_off",
      },
      sample: {
        type: "number",
        minimum: 0,
        maximum: 1,
        description: "The share that a ratio keeps; 1 if absent",
      },
      slow_ms: {
        ...most("A request whose first content comes later than this is kept", LONGEST),
        default: 10_000,
      },
      names: {
        enum: SPELLINGS,
        default: "both",
        description:
          "gen_ai names as the last release spells them, as they are spelled since they moved, or both",
      },
      keys: {
        type: "boolean",
        default: false,
        description: "Tell ids of keys and names of accounts",
      },
      labels: {
        type: "boolean",
        default: false,
        description: "Tell labels; never of a private request",
      },
      resource: texts("Attributes of the gateway itself, such as deployment.environment.name"),
      interval_ms: most("How often metrics are sent; 60000 if absent", LONGEST),
      delay_ms: most("How long a span waits for others to go with; 5000 if absent", LONGEST),
      queue: most("How many spans, and how many lines, may wait; 4096 if absent", 1_000_000),
      batch: most("How many go at once; 512 if absent", 100_000),
    },
  },
  setup(options, ctx) {
    const settings = settingsOf(options, ctx.env);
    if (settings.ignored.length > 0)
      ctx.log.warn(
        { variables: settings.ignored },
        "variables cannot be read, and are passed over",
      );
    const counts = ctx.shared("counts", () => ({ traces: none(), metrics: none(), logs: none() }));
    const over = new AbortController();
    const posts = postsOf(settings, options.retry_ms, ctx, over.signal);
    const batched = (signal: "traces" | "logs") =>
      posts[signal] && new Batches(settings, counts[signal], posts[signal]);
    const spans = batched("traces");
    const lines = batched("logs");
    ctx.onDispose(() => {
      over.abort();
      spans?.abandon();
      lines?.abandon();
    });
    const { keys, labels } = options;
    const spellings = spellingsOf(options.names);
    const pushed =
      posts.metrics && pushing(posts.metrics, settings, spellings, counts.metrics, ctx);
    const kept = keeps({ ...settings, slowMs: options.slow_ms });
    const tell = telling(spellings, { keys, labels });
    return {
      seen(batch: readonly RequestRecord[]) {
        pushed?.seen(batch);
        for (const record of batch) {
          if (spans && kept(record))
            spans.add(spansOf(record), (next) => saySpans(next, record, tell));
          lines?.add(1, (next) => sayRequest(next(), record, tell));
        }
      },
      turnedAway(batch) {
        for (const refusal of batch) lines?.add(1, (next) => sayRefusal(next(), refusal));
      },
      ...(pushed && { billed: pushed.billed }),
      told(notice) {
        pushed?.told(notice);
        lines?.add(1, (next) => sayNotice(next(), notice));
      },
      async end() {
        for (const post of Object.values(posts)) post?.hurry(END_MS);
        // A collector that hangs is waited for no longer: what it has not answered for is lost, and counted.
        const late = setTimeout(() => over.abort(), END_MS);
        await Promise.all([spans?.flush(), lines?.flush(), pushed?.push()]);
        clearTimeout(late);
      },
      commands: {
        state: {
          summary: "What was sent, what waits and what was lost",
          role: "viewer",
          writes: false,
          run: async () => ({
            traces: { ...counts.traces },
            metrics: { ...counts.metrics },
            logs: { ...counts.logs },
            waiting: { traces: spans?.waiting ?? 0, logs: lines?.waiting ?? 0 },
            to: Object.fromEntries(
              SIGNALS.map((signal) => [signal, settings.destinations[signal]?.url ?? null]),
            ),
          }),
        },
      },
    };
  },
});

/** The gateway waits five seconds for an observer that ends. */
const END_MS = 3_000;

const none = (): BatchCounts => ({ sent: 0, dropped: 0 });

function postsOf(
  { destinations, resource }: OtlpSettings,
  retryMs: number,
  ctx: Context,
  over: AbortSignal,
): { readonly [S in Signal]: Post | undefined } {
  const made = (signal: Signal) => {
    const to = destinations[signal];
    let before: string | undefined;
    const tell = (why: string | undefined) => {
      if (why !== undefined && before === undefined)
        ctx.log.warn({ signal, why }, "the collector does not take what it is sent");
      if (why === undefined && before !== undefined)
        ctx.log.info({ signal }, "the collector takes what it is sent again");
      before = why;
    };
    // Metrics say all of it again the next time.
    const again = signal === "metrics" ? 0 : retryMs;
    return to && new Post({ signal, to, resource, retryMs: again, fetch: ctx.fetch, over, tell });
  };
  return { traces: made("traces"), metrics: made("metrics"), logs: made("logs") };
}
