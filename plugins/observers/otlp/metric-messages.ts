// Encodes the series of /metrics as OTLP metrics, under the conventions' dotted names.
import {
  GEN_AI_ATTRIBUTES,
  GEN_AI_METRICS,
  MCP_METRICS,
  type NamingVersion,
  type VersionedName,
} from "../genai-names.ts";
import type { Family } from "../metrics/families.ts";
import type {
  Counter,
  Histogram,
  Series,
  Distribution,
  Sample,
  MetricsSink,
} from "../metrics/series.ts";
import { Attributes, Time } from "./attributes.ts";
import type { ProtobufMessage } from "./message-shapes.ts";
import type { Context, ChargeRecord, GatewayEvent, RequestRecord } from "tollgate/plugin";
import { MetricsWriter } from "../metrics/metrics-writer.ts";
import { createSharedTally } from "../metrics/tally.ts";
import type { ExportCounts } from "./export-queue.ts";
import type { HttpExporter } from "./http-exporter.ts";
import type { OtlpSettings } from "./settings.ts";

const CUMULATIVE = 2;
const OTLP_UNITS: Readonly<Record<string, string>> = { seconds: "s", bytes: "By", usd: "{usd}" };
/** The conventions' dotted names by their Prometheus form. */
const DOTTED_NAMES: ReadonlyMap<string, string> = new Map(
  [GEN_AI_METRICS, MCP_METRICS, GEN_AI_ATTRIBUTES]
    .flatMap((names) => Object.values(names) as readonly VersionedName[])
    .flatMap(({ released, latest }) => [released, latest])
    .flatMap((name) => (name === null ? [] : [[name.replaceAll(".", "_"), name] as const])),
);

/** Returns the OTLP name. The name contains no unit, and its first word is a namespace. */
function metricName({ name, unit }: Family): string {
  const bare = unit === undefined ? name : name.replace(new RegExp(`_${unit}$`), "");
  return DOTTED_NAMES.get(bare) ?? bare.replace("_", ".");
}

export class MetricMessages implements MetricsSink {
  readonly list: ProtobufMessage[] = [];
  readonly #start: Time;
  readonly #now: Time;

  /** `since`: start of counting in Unix milliseconds. */
  constructor(since: number, now: number) {
    this.#start = new Time(since);
    this.#now = new Time(now);
  }

  writeSeries(series: Series<Counter> | Series<Histogram>, as: Family = series.family): void {
    const histograms: ProtobufMessage[] = [];
    const numbers: ProtobufMessage[] = [];
    for (const { values, of } of series.all)
      if ("counts" in of) histograms.push(this.#histogramPoint(as, values, of));
      else numbers.push(this.#numberPoint(as, values, as.unit === "usd" ? of.nano : of.value));
    if (histograms.length > 0) this.#addHistogram(as, histograms);
    if (numbers.length > 0) this.#addSum(as, numbers);
  }

  writeFiltered(series: Series<Histogram>, as: Family, only: string, sum = false): void {
    const all = series.all.filter(({ values }) => values.at(-1) === only);
    if (all.length === 0) return;
    if (sum)
      this.#addSum(
        as,
        all.map(({ values, of }) => this.#numberPoint(as, values, of.sum)),
      );
    else
      this.#addHistogram(
        as,
        all.map(({ values, of }) => this.#histogramPoint(as, values, of)),
      );
  }

  writeSamples(family: Family, samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    const dataPoints = samples.map(([values, value]) => this.#numberPoint(family, values, value));
    if (family.type === "counter") this.#addSum(family, dataPoints);
    else this.#add(family, { gauge: { dataPoints } });
  }

  writeDistribution(family: Family, { count, sum, buckets }: Distribution): void {
    let before = 0;
    const bucketCounts = buckets.map(([, at]) => {
      const within = at - before;
      before = at;
      return String(within);
    });
    const point = {
      ...this.#dataPoint(family, []),
      count: String(count),
      sum,
      bucketCounts: [...bucketCounts, String(count - before)],
      explicitBounds: buckets.map(([bound]) => bound),
    };
    this.#addHistogram(family, [point]);
  }

  #dataPoint({ labels }: Family, values: readonly string[]): ProtobufMessage {
    const attributes = new Attributes();
    for (const [i, label] of labels.entries())
      if (values[i]) attributes.add(DOTTED_NAMES.get(label) ?? label, values[i]);
    return {
      attributes,
      startTimeUnixNano: this.#start,
      timeUnixNano: this.#now,
    };
  }

  #numberPoint(family: Family, values: readonly string[], value: number | bigint): ProtobufMessage {
    const asDouble = typeof value === "bigint" ? Number(value) / 1e9 : value;
    return { ...this.#dataPoint(family, values), asDouble };
  }

  #histogramPoint(family: Family, values: readonly string[], of: Histogram): ProtobufMessage {
    let count = 0;
    for (const within of of.counts) count += within;
    const exemplars = (of.exemplars ?? []).flatMap((one) =>
      one ? [{ timeUnixNano: new Time(one.at), asDouble: one.value, traceId: one.trace }] : [],
    );
    return {
      ...this.#dataPoint(family, values),
      count: String(count),
      sum: of.sum,
      bucketCounts: Array.from(of.counts, String),
      explicitBounds: of.bounds,
      ...(exemplars.length > 0 && { exemplars }),
    };
  }

  #addSum(family: Family, dataPoints: readonly ProtobufMessage[]): void {
    const sum = { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true };
    this.#add(family, { sum });
  }

  #addHistogram(family: Family, dataPoints: readonly ProtobufMessage[]): void {
    this.#add(family, { histogram: { dataPoints, aggregationTemporality: CUMULATIVE } });
  }

  #add(family: Family, data: ProtobufMessage): void {
    const { help, unit } = family;
    const name = metricName(family);
    this.list.push({
      name,
      description: help,
      unit: unit === undefined ? undefined : OTLP_UNITS[unit],
      ...data,
    });
  }
}

// Pushes metrics periodically: the same metrics as /metrics, counted separately for this observer.

interface MetricsPush {
  onRequests(batch: readonly RequestRecord[]): void;
  onCharges(lines: readonly ChargeRecord[]): void;
  onEvent(notice: GatewayEvent): void;
  /**
   * Pushes the current state. Metrics are cumulative and the next push repeats them, so failed
   * pushes are not queued.
   */
  push(): Promise<void>;
}

export function createMetricsPush(
  post: HttpExporter,
  { intervalMs }: Pick<OtlpSettings, "intervalMs">,
  spellings: readonly NamingVersion[],
  counts: ExportCounts,
  ctx: Context,
): MetricsPush {
  const options = { genAi: spellings.length > 0, keys: false, labels: [], maxLabelValues: 0 };
  const { tally, activate } = createSharedTally(ctx, options);
  const { since } = ctx.shared("began", () => ({ since: Date.now() }));
  const all = new MetricsWriter(ctx, tally, spellings);
  const push = async (): Promise<void> => {
    const out = new MetricMessages(since, Date.now());
    await all.writeTo(out);
    const items = post.createBatch();
    for (const metric of out.list) items.add(metric);
    const taken = await post.send(items);
    counts.sent += taken;
    counts.dropped += items.count - taken;
  };
  ctx.runEvery(intervalMs, push);
  return {
    onRequests: (batch) => activate().onRequests(batch),
    onCharges: (lines) => activate().onCharges(lines),
    onEvent: (notice) => activate().onEvent(notice),
    push,
  };
}
