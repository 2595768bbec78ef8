// Exports spans, metrics, and logs to an OpenTelemetry collector by OTLP over HTTP. All data comes
// from request records, so exports never contain prompts or responses.
import { defineObserver, type Context, type RequestRecord } from "tollgate/plugin";
import { NAMING_CHOICES, namingVersionsOf } from "./genai-names.ts";
import { ExportQueue, type ExportCounts } from "./otlp/export-queue.ts";
import {
  writeEventLog,
  writeRejectionLog,
  writeRequestLog,
  createSpanOptions,
} from "./otlp/log-records.ts";
import { HttpExporter } from "./otlp/http-exporter.ts";
import { createMetricsPush } from "./otlp/metrics-push.ts";
import { createSampler, SAMPLERS } from "./otlp/sampler.ts";
import {
  exporterOrigins,
  PROTOCOLS,
  resolveSettings,
  SIGNALS,
  VARIABLES,
  type OtlpSettings,
} from "./otlp/settings.ts";
import { writeSpans, countSpans } from "./otlp/spans.ts";
import type { Signal } from "./otlp/message-shapes.ts";

const stringMapOption = (description: string, more: object = {}) =>
  ({ type: "object", additionalProperties: { type: "string", ...more }, description }) as const;
const positiveIntegerOption = (description: string, maximum: number) =>
  ({ type: "integer", minimum: 1, maximum, description }) as const;
const MAX_TIMER_MS = 2 ** 31 - 1;

export default defineObserver({
  api: 1,
  name: "otlp",
  summary: "Traces, metrics and logs to an OpenTelemetry collector",
  stability: "beta",
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  needs: { env: VARIABLES, origins: exporterOrigins },
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
      headers: stringMapOption("Sent along, such as a token", { "x-secret": true }),
      timeout_ms: positiveIntegerOption(
        "How long one post may take; 10000 if absent",
        MAX_TIMER_MS,
      ),
      retry_ms: {
        ...positiveIntegerOption(
          "How long one batch is tried again while the collector has no room for it",
          MAX_TIMER_MS,
        ),
        default: 120_000,
      },
      sampler: {
        enum: SAMPLERS,
        description:
          "Which requests become spans; parentbased_traceidratio if absent. Failures, second attempts and slow ones do under each but always_off",
      },
      sample_ratio: {
        type: "number",
        minimum: 0,
        maximum: 1,
        description: "The share that a ratio keeps; 1 if absent",
      },
      slow_ms: {
        ...positiveIntegerOption(
          "A request whose first content comes later than this is kept",
          MAX_TIMER_MS,
        ),
        default: 10_000,
      },
      genai_names: {
        enum: NAMING_CHOICES,
        default: "both",
        description:
          "gen_ai names as the last release spells them, as they are spelled since they moved, or both",
      },
      include_keys: {
        type: "boolean",
        default: false,
        description: "Tell ids of keys and names of accounts",
      },
      include_labels: {
        type: "boolean",
        default: false,
        description: "Tell labels; never of a private request",
      },
      resource: stringMapOption(
        "Attributes of the gateway itself, such as deployment.environment.name",
      ),
      metrics_interval_ms: positiveIntegerOption(
        "How often metrics are sent; 60000 if absent",
        MAX_TIMER_MS,
      ),
      batch_delay_ms: positiveIntegerOption(
        "How long a span waits for others to go with; 5000 if absent",
        MAX_TIMER_MS,
      ),
      queue_size: positiveIntegerOption(
        "How many spans, and how many lines, may wait; 4096 if absent",
        1_000_000,
      ),
      batch_size: positiveIntegerOption("How many go at once; 512 if absent", 100_000),
    },
  },
  setup(options, ctx) {
    const settings = resolveSettings(options, ctx.env);
    if (settings.ignored.length > 0)
      ctx.log.warn(
        { variables: settings.ignored },
        "variables cannot be read, and are passed over",
      );
    const counts = ctx.shared("counts", () => ({
      traces: createCounts(),
      metrics: createCounts(),
      logs: createCounts(),
    }));
    const over = new AbortController();
    const posts = createExporters(settings, options.retry_ms, ctx, over.signal);
    const batched = (signal: "traces" | "logs") =>
      posts[signal] && new ExportQueue(settings, counts[signal], posts[signal]);
    const spans = batched("traces");
    const lines = batched("logs");
    ctx.onDispose(() => {
      over.abort();
      spans?.abandon();
      lines?.abandon();
    });
    const { include_keys: keys, include_labels: labels } = options;
    const spellings = namingVersionsOf(options.genai_names);
    const pushed =
      posts.metrics && createMetricsPush(posts.metrics, settings, spellings, counts.metrics, ctx);
    const kept = createSampler({ ...settings, slowMs: options.slow_ms });
    const tell = createSpanOptions(spellings, { keys, labels });
    return {
      onRequests(batch: readonly RequestRecord[]) {
        pushed?.onRequests(batch);
        for (const record of batch) {
          if (spans && kept(record))
            spans.add(countSpans(record), (next) => writeSpans(next, record, tell));
          lines?.add(1, (next) => writeRequestLog(next(), record, tell));
        }
      },
      onRejected(batch) {
        for (const refusal of batch) lines?.add(1, (next) => writeRejectionLog(next(), refusal));
      },
      ...(pushed && { onCharges: pushed.onCharges }),
      onEvent(notice) {
        pushed?.onEvent(notice);
        lines?.add(1, (next) => writeEventLog(next(), notice));
      },
      async flush() {
        for (const post of Object.values(posts)) post?.limitRetries(FLUSH_TIMEOUT_MS);
        // Stops waiting for a collector that hangs. Items that the collector has not acknowledged
        // are dropped and counted.
        const late = setTimeout(() => over.abort(), FLUSH_TIMEOUT_MS);
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

/** Below the 5 s that the gateway waits for an observer to shut down. */
const FLUSH_TIMEOUT_MS = 3_000;

const createCounts = (): ExportCounts => ({ sent: 0, dropped: 0 });

function createExporters(
  { destinations, resource }: OtlpSettings,
  retryMs: number,
  ctx: Context,
  over: AbortSignal,
): { readonly [S in Signal]: HttpExporter | undefined } {
  const made = (signal: Signal) => {
    const to = destinations[signal];
    let before: string | undefined;
    const tell = (reason: string | undefined) => {
      if (reason !== undefined && before === undefined)
        ctx.log.warn({ signal, reason }, "the collector does not take what it is sent");
      if (reason === undefined && before !== undefined)
        ctx.log.info({ signal }, "the collector takes what it is sent again");
      before = reason;
    };
    // Metrics are cumulative, so the next export repeats them and no retry is needed.
    const again = signal === "metrics" ? 0 : retryMs;
    return (
      to &&
      new HttpExporter({
        signal,
        destination: to,
        resource,
        retryMs: again,
        fetch: ctx.fetch,
        abortSignal: over,
        onStateChange: tell,
      })
    );
  };
  return { traces: made("traces"), metrics: made("metrics"), logs: made("logs") };
}
