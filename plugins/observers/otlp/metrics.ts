// What /metrics would say, as OTLP's metrics: the same series, under the conventions' dotted names.
import { GEN_AI_ATTRIBUTES, GEN_AI_METRICS } from "../genai.ts";
import type { Family } from "../metrics/families.ts";
import type { Count, Histogram, Series } from "../metrics/series.ts";
import type { Distribution, Sample, Sink } from "../metrics/sink.ts";
import { ListedAttributes, nanos } from "./attributes.ts";
import type { Message } from "./protobuf.ts";

const CUMULATIVE = 2;
const UNITS: Readonly<Record<string, string>> = { seconds: "s", bytes: "By", usd: "{usd}" };
/** Of the conventions' names, as a scraper has them: with their dots. */
const DOTTED: ReadonlyMap<string, string> = new Map(
  [...Object.values(GEN_AI_METRICS), ...Object.values(GEN_AI_ATTRIBUTES)]
    .flatMap(({ released, latest }) => [released, latest])
    .flatMap((name) => (name === null ? [] : [[name.replaceAll(".", "_"), name] as const])),
);

/** A unit is no part of a name here, and the first word is a namespace. */
function nameOf({ name, unit }: Family): string {
  const bare = unit === undefined ? name : name.replace(new RegExp(`_${unit}$`), "");
  return DOTTED.get(bare) ?? bare.replace("_", ".");
}

export class MetricMessages implements Sink {
  readonly list: Message[] = [];
  readonly #start: string;
  readonly #now: string;

  /** `since`: when counting began, in Unix milliseconds. */
  constructor(since: number, now: number) {
    this.#start = nanos(since);
    this.#now = nanos(now);
  }

  counted(series: Series<Count> | Series<Histogram>, as: Family = series.family): void {
    const histograms: Message[] = [];
    const numbers: Message[] = [];
    for (const { values, of } of series.all)
      if ("counts" in of) histograms.push(this.#histogram(as, values, of));
      else numbers.push(this.#number(as, values, as.unit === "usd" ? of.nano : of.value));
    if (histograms.length > 0) this.#addHistogram(as, histograms);
    if (numbers.length > 0) this.#addSum(as, numbers);
  }

  part(series: Series<Histogram>, as: Family, only: string, sum = false): void {
    const all = series.all.filter(({ values }) => values.at(-1) === only);
    if (all.length === 0) return;
    if (sum)
      this.#addSum(
        as,
        all.map(({ values, of }) => this.#number(as, values, of.sum)),
      );
    else
      this.#addHistogram(
        as,
        all.map(({ values, of }) => this.#histogram(as, values, of)),
      );
  }

  read(family: Family, samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    const dataPoints = samples.map(([values, value]) => this.#number(family, values, value));
    if (family.type === "counter") this.#addSum(family, dataPoints);
    else this.#add(family, { gauge: { dataPoints } });
  }

  distribution(family: Family, { count, sum, upTo }: Distribution): void {
    let before = 0;
    const bucketCounts = upTo.map(([, at]) => {
      const within = at - before;
      before = at;
      return String(within);
    });
    const point = {
      ...this.#point(family, []),
      count: String(count),
      sum,
      bucketCounts: [...bucketCounts, String(count - before)],
      explicitBounds: upTo.map(([bound]) => bound),
    };
    this.#addHistogram(family, [point]);
  }

  #point({ labels }: Family, values: readonly string[]): Message {
    const attributes = new ListedAttributes();
    for (const [i, label] of labels.entries())
      if (values[i]) attributes.add(DOTTED.get(label) ?? label, values[i]);
    return {
      attributes: attributes.list,
      startTimeUnixNano: this.#start,
      timeUnixNano: this.#now,
    };
  }

  #number(family: Family, values: readonly string[], value: number | bigint): Message {
    const asDouble = typeof value === "bigint" ? Number(value) / 1e9 : value;
    return { ...this.#point(family, values), asDouble };
  }

  #histogram(family: Family, values: readonly string[], of: Histogram): Message {
    let count = 0;
    for (const within of of.counts) count += within;
    const exemplars = (of.exemplars ?? []).flatMap((one) =>
      one ? [{ timeUnixNano: nanos(one.at), asDouble: one.value, traceId: one.trace }] : [],
    );
    return {
      ...this.#point(family, values),
      count: String(count),
      sum: of.sum,
      bucketCounts: Array.from(of.counts, String),
      explicitBounds: of.bounds,
      ...(exemplars.length > 0 && { exemplars }),
    };
  }

  #addSum(family: Family, dataPoints: readonly Message[]): void {
    const sum = { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true };
    this.#add(family, { sum });
  }

  #addHistogram(family: Family, dataPoints: readonly Message[]): void {
    this.#add(family, { histogram: { dataPoints, aggregationTemporality: CUMULATIVE } });
  }

  #add(family: Family, data: Message): void {
    const { help, unit } = family;
    const name = nameOf(family);
    this.list.push({
      name,
      description: help,
      unit: unit === undefined ? undefined : UNITS[unit],
      ...data,
    });
  }
}
