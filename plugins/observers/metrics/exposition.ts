// Writes metrics as text, in format 0.0.4 or OpenMetrics 1.0. The formats differ in counter
// suffixes, units, exemplars, and the end marker.
import type { Family } from "./families.ts";
import type { Counter, Histogram, Series, Distribution, Sample, MetricsSink } from "./series.ts";

export type ExpositionFormat = "text" | "openmetrics";

const MAX_VALUE_LENGTH = 256;
/** Characters that some parsers treat as line ends. */
const LINE_ENDS = /[\p{Cc}\u2028\u2029]/gu;

const escapeLabelValue = (value: string): string =>
  value
    .slice(0, MAX_VALUE_LENGTH)
    .replace(LINE_ENDS, "\u{fffd}")
    .replace(/[\\"]/g, String.raw`\$&`);

/** Formats nano-dollars as dollars, exact to the nano-dollar. */
export function nanoToUsd(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return `${nano < 0n ? "-" : ""}${digits.slice(0, -9)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Formats a bucket bound. The text is the same in every process and format. */
const formatBound = (value: number): string =>
  Number.isInteger(value) ? `${value}.0` : String(value);

export class Exposition implements MetricsSink {
  readonly #openMetrics: boolean;
  readonly #lines: string[] = [];

  constructor(form: ExpositionFormat) {
    this.#openMetrics = form === "openmetrics";
  }

  writeSeries(series: Series<Counter> | Series<Histogram>, as: Family = series.family): void {
    if (series.all.length === 0) return;
    this.#writeHeader(as);
    for (const { values, of } of series.all) {
      const labels = formatLabels(as.labels, values);
      if ("counts" in of) this.#writeHistogram(as.name, labels, of);
      else
        this.#writeSample(
          `${as.name}_total`,
          labels,
          as.unit === "usd" ? nanoToUsd(of.nano) : of.value,
        );
    }
  }

  /**
   * Writes the series whose last label has this value, without that label. With `sum`, writes the
   * histogram sums as counters.
   */
  writeFiltered(series: Series<Histogram>, as: Family, only: string, sum = false): void {
    const all = series.all.filter(({ values }) => values.at(-1) === only);
    if (all.length === 0) return;
    this.#writeHeader(as);
    for (const { values, of } of all) {
      const labels = formatLabels(as.labels, values);
      if (sum) this.#writeSample(`${as.name}_total`, labels, of.sum);
      else this.#writeHistogram(as.name, labels, of);
    }
  }

  writeSamples(family: Family, samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    this.#writeHeader(family);
    const name = `${family.name}${TYPE_SUFFIXES[family.type] ?? ""}`;
    for (const [values, value] of samples)
      this.#writeSample(
        name,
        formatLabels(family.labels, values),
        typeof value === "bigint" ? nanoToUsd(value) : value,
      );
  }

  writeDistribution(family: Family, { count, sum, buckets }: Distribution): void {
    this.#writeHeader(family);
    const { name } = family;
    for (const [le, at] of buckets)
      this.#writeSample(`${name}_bucket`, `le="${formatBound(le)}"`, at);
    this.#writeSample(`${name}_bucket`, 'le="+Inf"', count);
    this.#writeSample(`${name}_count`, "", count);
    this.#writeSample(`${name}_sum`, "", sum);
  }

  #writeHeader({ name, type, unit, help }: Family): void {
    const lines = this.#lines;
    const suffix = TYPE_SUFFIXES[type] ?? "";
    if (this.#openMetrics) {
      lines.push(`# TYPE ${name} ${type}`);
      if (unit !== undefined) lines.push(`# UNIT ${name} ${unit}`);
      lines.push(`# HELP ${name} ${help}`);
    } else {
      lines.push(`# HELP ${name}${suffix} ${help}`);
      lines.push(`# TYPE ${name}${suffix} ${type === "info" ? "gauge" : type}`);
    }
  }

  #writeHistogram(
    name: string,
    labels: string,
    { bounds, counts, sum, exemplars }: Histogram,
  ): void {
    const before = labels === "" ? "" : `${labels},`;
    let upTo = 0;
    for (let i = 0; i <= bounds.length; i++) {
      upTo += counts[i]!;
      const le = i < bounds.length ? formatBound(bounds[i]!) : "+Inf";
      const example = this.#openMetrics ? exemplars?.[i] : undefined;
      const more = example
        ? ` # {trace_id="${example.trace}"} ${example.value} ${example.at / 1_000}`
        : "";
      this.#lines.push(`${name}_bucket{${before}le="${le}"} ${upTo}${more}`);
    }
    this.#writeSample(`${name}_count`, labels, upTo);
    this.#writeSample(`${name}_sum`, labels, sum);
  }

  #writeSample(name: string, labels: string, value: number | string): void {
    this.#lines.push(labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`);
  }

  finish(): string {
    if (this.#openMetrics) this.#lines.push("# EOF");
    return `${this.#lines.join("\n")}\n`;
  }
}

const TYPE_SUFFIXES: Readonly<Partial<Record<Family["type"], string>>> = {
  counter: "_total",
  info: "_info",
};

const formatLabels = (labels: readonly string[], values: readonly string[]): string =>
  labels.map((label, i) => `${label}="${escapeLabelValue(values[i] ?? "")}"`).join(",");
