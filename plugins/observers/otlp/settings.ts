// Resolves the settings of the collector. gateway.yaml has precedence, then the OTEL_* variables,
// then the defaults of their specification.
import type { Signal } from "./message-shapes.ts";
import type { RequestRecord, RequestTrace } from "tollgate/plugin";

export const SIGNALS = ["traces", "metrics", "logs"] as const satisfies readonly Signal[];
export const PROTOCOLS = ["http/protobuf", "http/json"] as const;
type Protocol = (typeof PROTOCOLS)[number];

/** Options of the plugin. If a property is unset, the environment is used. */
export interface OtlpOptions {
  readonly endpoint?: string | undefined;
  readonly signals?: readonly Signal[] | undefined;
  readonly protocol?: Protocol | undefined;
  readonly compression?: "gzip" | "none" | undefined;
  readonly headers?: { readonly [name: string]: string } | undefined;
  readonly timeout_ms?: number | undefined;
  readonly sampler?: SamplerName | undefined;
  readonly sample_ratio?: number | undefined;
  readonly resource?: { readonly [name: string]: string } | undefined;
  readonly metrics_interval_ms?: number | undefined;
  readonly batch_delay_ms?: number | undefined;
  readonly queue_size?: number | undefined;
  readonly batch_size?: number | undefined;
}

/** Destination of one signal. */
export interface Destination {
  readonly url: string;
  readonly protocol: Protocol;
  readonly gzip: boolean;
  readonly headers: { readonly [name: string]: string };
  readonly timeoutMs: number;
}

export interface OtlpSettings {
  readonly destinations: { readonly [S in Signal]: Destination | undefined };
  readonly sampler: SamplerName;
  readonly ratio: number;
  readonly resource: ReadonlyMap<string, string>;
  readonly intervalMs: number;
  readonly delayMs: number;
  readonly maxQueued: number;
  readonly batchSize: number;
  /** Variables with invalid values, which are ignored. */
  readonly ignored: readonly string[];
}

const EXPORTER_VARIABLES = ["ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION", "TIMEOUT"] as const;
const GENERAL_VARIABLES = [
  "OTEL_SDK_DISABLED",
  "OTEL_SERVICE_NAME",
  "OTEL_RESOURCE_ATTRIBUTES",
  "OTEL_TRACES_SAMPLER",
  "OTEL_TRACES_SAMPLER_ARG",
  "OTEL_METRIC_EXPORT_INTERVAL",
  "OTEL_BSP_SCHEDULE_DELAY",
  "OTEL_BSP_MAX_QUEUE_SIZE",
  "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
] as const;

/** All variables that are read. */
export const VARIABLES: readonly string[] = [
  ...GENERAL_VARIABLES,
  ...SIGNALS.map((signal) => `OTEL_${signal.toUpperCase()}_EXPORTER`),
  ...["", ...SIGNALS.map((signal) => `${signal.toUpperCase()}_`)].flatMap((signal) =>
    EXPORTER_VARIABLES.map((what) => `OTEL_EXPORTER_OTLP_${signal}${what}`),
  ),
];

export type Environment = (name: string) => string | undefined;

export function resolveSettings(options: OtlpOptions, env: Environment): OtlpSettings {
  const read = new EnvironmentReader(env);
  const off = env("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  const wanted = (signal: Signal) =>
    !off &&
    (options.signals?.includes(signal) ?? env(`OTEL_${signal.toUpperCase()}_EXPORTER`) !== "none");
  const to = (signal: Signal) =>
    wanted(signal) ? resolveDestination(signal, options, read) : undefined;
  const destinations = { traces: to("traces"), metrics: to("metrics"), logs: to("logs") };
  const resource = new Map(read.readPairs("OTEL_RESOURCE_ATTRIBUTES"));
  const name = env("OTEL_SERVICE_NAME");
  if (name !== undefined && name !== "") resource.set("service.name", name);
  for (const [key, value] of Object.entries(options.resource ?? {})) resource.set(key, value);
  if (!resource.has("service.name")) resource.set("service.name", "tollgate");
  return {
    destinations,
    resource,
    sampler:
      options.sampler ??
      read.read("OTEL_TRACES_SAMPLER", (text) => SAMPLERS.find((one) => one === text)) ??
      "parentbased_traceidratio",
    ratio: options.sample_ratio ?? read.readNumber("OTEL_TRACES_SAMPLER_ARG", 0, 1) ?? 1,
    intervalMs:
      options.metrics_interval_ms ?? read.readNumber("OTEL_METRIC_EXPORT_INTERVAL", 100) ?? 60_000,
    delayMs: options.batch_delay_ms ?? read.readNumber("OTEL_BSP_SCHEDULE_DELAY", 1) ?? 5_000,
    maxQueued: options.queue_size ?? read.readNumber("OTEL_BSP_MAX_QUEUE_SIZE", 1) ?? 4_096,
    batchSize: options.batch_size ?? read.readNumber("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1) ?? 512,
    ignored: [...read.ignored],
  };
}

/** Returns the origins of all signals, which the plugin must be able to reach. */
export function exporterOrigins(options: OtlpOptions, env: Environment): string[] {
  const { destinations } = resolveSettings(options, env);
  return SIGNALS.flatMap((signal) => destinations[signal]?.url ?? []);
}

function resolveDestination(
  signal: Signal,
  options: OtlpOptions,
  read: EnvironmentReader,
): Destination {
  /** A signal's own variable takes precedence over the common variable. */
  const named = (what: (typeof EXPORTER_VARIABLES)[number]) => [
    `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${what}`,
    `OTEL_EXPORTER_OTLP_${what}`,
  ];
  const first = <T>(
    what: (typeof EXPORTER_VARIABLES)[number],
    of: (text: string) => T | undefined,
  ) => {
    for (const name of named(what)) {
      const value = read.read(name, of);
      if (value !== undefined) return value;
    }
    return undefined;
  };
  const [own, common] = named("ENDPOINT") as [string, string];
  const below = (base: string) => `${base.replace(/\/+$/, "")}/v1/${signal}`;
  const url =
    options.endpoint === undefined
      ? (read.read(own, parseHttpUrl) ??
        below(read.read(common, parseHttpUrl) ?? "http://localhost:4318"))
      : below(options.endpoint);
  const headers =
    options.headers ??
    Object.fromEntries(
      named("HEADERS")
        .toReversed()
        .flatMap((name) => read.readPairs(name)),
    );
  return {
    url,
    headers,
    protocol:
      options.protocol ??
      first("PROTOCOL", (text) => PROTOCOLS.find((one) => one === text)) ??
      "http/protobuf",
    gzip:
      (options.compression ??
        first("COMPRESSION", (text) => (["gzip", "none"] as const).find((one) => one === text)) ??
        (isLocalhost(url) ? "none" : "gzip")) === "gzip",
    timeoutMs: options.timeout_ms ?? first("TIMEOUT", parsePositive) ?? 10_000,
  };
}

/** Whether the collector is on this machine, where compression costs more than it saves. */
const isLocalhost = (url: string): boolean =>
  /^(localhost|127\.[\d.]+|\[::1\])$/.test(URL.parse(url)?.hostname ?? "");

const parseHttpUrl = (text: string): string | undefined =>
  /^https?:$/.test(URL.parse(text)?.protocol ?? "") ? text : undefined;
const parsePositive = (text: string): number | undefined => {
  const number = Number(text);
  return Number.isFinite(number) && number > 0 ? number : undefined;
};

/** Reads variables and collects the invalid variables, which are treated as unset. */
class EnvironmentReader {
  readonly ignored = new Set<string>();
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  read<T>(name: string, of: (text: string) => T | undefined): T | undefined {
    const text = this.#env(name)?.trim();
    if (text === undefined || text === "") return undefined;
    const value = of(text);
    if (value === undefined) this.ignored.add(name);
    return value;
  }

  readNumber(name: string, least: number, most = 2 ** 31 - 1): number | undefined {
    return this.read(name, (text) => {
      const number = Number(text);
      return number >= least && number <= most ? number : undefined;
    });
  }

  /** Reads percent-encoded pairs in the form `name=value,name=value`. */
  readPairs(name: string): [string, string][] {
    return (
      this.read(name, (text) => {
        const pairs: [string, string][] = [];
        for (const part of text.split(",")) {
          const mark = part.indexOf("=");
          if (part.trim() === "") continue;
          const key = tryDecode(part.slice(0, Math.max(mark, 0)).trim());
          const value = tryDecode(part.slice(mark + 1).trim());
          if (mark < 1 || key === undefined || value === undefined) return undefined;
          pairs.push([key, value]);
        }
        return pairs;
      }) ?? []
    );
  }
}

function tryDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

// Decides which requests become spans. The decision is made when a request ends, so that failures
// are kept even if the sampler would drop them.

export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
type SamplerName = (typeof SAMPLERS)[number];

interface SamplerOptions {
  readonly sampler: SamplerName;
  readonly ratio: number;
  /** Requests whose first token takes longer than this are slow. In milliseconds. */
  readonly slowMs: number;
}

/**
 * Returns a function that decides whether a request's spans are sent. With `always_off`, no spans
 * are sent. All other samplers also keep failures, requests with several calls, and slow requests.
 */
export function createSampler({
  sampler,
  ratio,
  slowMs,
}: SamplerOptions): (of: RequestRecord) => boolean {
  if (sampler === "always_off") return () => false;
  const based = sampler.startsWith("parentbased_");
  const root = based ? sampler.slice("parentbased_".length) : sampler;
  const share = root === "always_on" ? 1 : root === "always_off" ? 0 : ratio;
  const sampled = ({ traceId, sampled }: RequestTrace): boolean =>
    based && sampled !== undefined ? sampled : share === 1 || isInRatio(traceId, share);
  return (record) => sampled(record.trace) || isNoteworthy(record, slowMs);
}

const DIGITS = 13;

/**
 * Compares the upper bits of the trace ID's lower half, as other implementations of this sampler
 * do. All these implementations therefore keep the same traces.
 */
const isInRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(16, 16 + DIGITS), 16) < ratio * 16 ** DIGITS;

function isNoteworthy(record: RequestRecord, slowMs: number): boolean {
  const { outcome, calls, ms } = record;
  if (outcome === "upstream_error" || outcome === "error" || calls.length > 1) return true;
  return (record.firstTokenMs ?? ms) > slowMs;
}
