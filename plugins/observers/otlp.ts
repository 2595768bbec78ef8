// Exports spans, metrics, and logs to an OpenTelemetry collector by OTLP over HTTP. All data comes
// from request records, so exports never contain prompts or responses.
import { defineObserver, type Context, type RequestRecord } from "tollgate/plugin";
import { NAMING_CHOICES, namingVersionsOf } from "./genai-names.ts";
import { ExportQueue, type ExportCounts } from "./otlp/export-queue.ts";
import { addRequestLog, eventLog, rejectionLog } from "./otlp/log-records.ts";
import { HttpExporter } from "./otlp/http-exporter.ts";
import { createMetricsPush } from "./otlp/metric-messages.ts";
import {
  createSampler,
  SAMPLERS,
  exporterOrigins,
  PROTOCOLS,
  resolveSettings,
  SIGNALS,
  VARIABLES,
  type OtlpSettings,
} from "./otlp/settings.ts";
import { jobSpan } from "./otlp/job-span.ts";
import { addSpans, countSpans, createSpanOptions } from "./otlp/spans.ts";
import type { Signal } from "./otlp/message-shapes.ts";

const stringMapOption = (description: string, more: object = {}) =>
  ({ type: "object", additionalProperties: { type: "string", ...more }, description }) as const;
const positiveIntegerOption = (description: string, maximum: number) =>
  ({ type: "integer", minimum: 1, maximum, description }) as const;
const MAX_TIMER_MS = 2 ** 31 - 1;

export default defineObserver({
  api: 1,
  name: "otlp",
  summary: "Send traces, metrics, and logs to an OpenTelemetry collector",
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
          "Base URL of the collector. /v1/traces, /v1/metrics, and /v1/logs are appended. " +
          "Default: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318",
      },
      signals: {
        type: "array",
        items: { enum: SIGNALS },
        uniqueItems: true,
        description:
          "Signals to send. Default: all three, except those for which OTEL_*_EXPORTER is none",
      },
      protocol: { enum: PROTOCOLS, description: "Protocol of the export. Default: http/protobuf" },
      compression: {
        enum: ["gzip", "none"],
        description:
          "Compression of the export. Default: gzip, or none if the collector runs on this " +
          "machine",
      },
      headers: stringMapOption("Headers to send to the collector, such as an authorization token", {
        "x-secret": true,
      }),
      timeout_ms: positiveIntegerOption(
        "Timeout of one export request, in milliseconds. Default: 10000",
        MAX_TIMER_MS,
      ),
      retry_ms: {
        ...positiveIntegerOption(
          "Maximum time for which one batch is retried while the collector is " +
            "overloaded, in milliseconds",
          MAX_TIMER_MS,
        ),
        default: 120_000,
      },
      sampler: {
        enum: SAMPLERS,
        description:
          "Sampler of request spans. Default: parentbased_traceidratio. Failed, retried, " +
          "and slow requests are always sampled unless the sampler is always_off",
      },
      sample_ratio: {
        type: "number",
        minimum: 0,
        maximum: 1,
        description: "Sampling ratio. Default: 1",
      },
      slow_ms: {
        ...positiveIntegerOption(
          "Time to first token, in milliseconds, above which a request is always sampled",
          MAX_TIMER_MS,
        ),
        default: 10_000,
      },
      genai_names: {
        enum: NAMING_CHOICES,
        default: "both",
        description:
          "Version of the gen_ai attribute names: released (of the last released conventions), latest, both, or off",
      },
      include_keys: {
        type: "boolean",
        default: false,
        description: "Whether to include key IDs and account names",
      },
      include_labels: {
        type: "boolean",
        default: false,
        description: "Whether to include labels. Labels of private requests are never sent",
      },
      resource: stringMapOption(
        "Resource attributes of the gateway, such as deployment.environment.name",
      ),
      metrics_interval_ms: positiveIntegerOption(
        "Interval between metric exports, in milliseconds. Default: 60000",
        MAX_TIMER_MS,
      ),
      batch_delay_ms: positiveIntegerOption(
        "How long a span waits for its batch to fill, in milliseconds. Default: 5000",
        MAX_TIMER_MS,
      ),
      queue_size: positiveIntegerOption(
        "Maximum number of queued spans, and of queued log records. Default: 4096",
        1_000_000,
      ),
      batch_size: positiveIntegerOption(
        "Maximum number of items per export. Default: 512",
        100_000,
      ),
    },
  },
  setup(options, ctx) {
    const settings = resolveSettings(options, ctx.env);
    if (settings.ignored.length > 0)
      ctx.log.warn({ variables: settings.ignored }, "environment variables not readable, ignored");
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
            spans.add(countSpans(record), (next) => addSpans(next, record, tell));
          lines?.add(1, (next) => addRequestLog(next(), record, tell));
        }
      },
      onRejected(batch) {
        for (const refusal of batch) lines?.add(1, (next) => next().add(rejectionLog(refusal)));
      },
      ...(pushed && { onCharges: pushed.onCharges }),
      onEvent(notice) {
        pushed?.onEvent(notice);
        if (notice.type === "job_ended" && settings.sampler !== "always_off")
          spans?.add(1, (next) => next().add(jobSpan(notice, { keys })));
        lines?.add(1, (next) => next().add(eventLog(notice)));
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
          summary: "Show sent, queued, and lost telemetry",
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

/** This is less than the 5 s that the gateway waits for an observer to shut down. */
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
        ctx.log.warn({ signal, reason }, "telemetry export failed");
      if (reason === undefined && before !== undefined)
        ctx.log.info({ signal }, "telemetry export recovered");
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
