// The text that scrapers read, in both of its forms: 0.0.4 and OpenMetrics 1.0. They differ in where a counter's suffix stands, in
// units, exemplars and the end.
import type { Family } from "./families.ts";
import type { Count, Histogram, Series } from "./series.ts";
import type { Distribution, Sample, Sink } from "./sink.ts";

export type Form = "text" | "openmetrics";

const LONGEST_VALUE = 256;
/** What some readers take for the end of a line. */
const LINE_ENDS = /[\p{Cc}\u2028\u2029]/gu;

const escaped = (value: string): string =>
  value
    .slice(0, LONGEST_VALUE)
    .replace(LINE_ENDS, "\u{fffd}")
    .replace(/[\\"]/g, String.raw`\$&`);

/** Dollars, to the last nano. */
export function dollars(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return `${nano < 0n ? "-" : ""}${digits.slice(0, -9)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** A bound is the same text in every process and in every form. */
const bound = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value));

export class Exposition implements Sink {
  readonly #openMetrics: boolean;
  readonly #lines: string[] = [];

  constructor(form: Form) {
    this.#openMetrics = form === "openmetrics";
  }

  counted(series: Series<Count> | Series<Histogram>, as: Family = series.family): void {
    if (series.all.length === 0) return;
    this.#head(as);
    for (const { values, of } of series.all) {
      const labels = pairs(as.labels, values);
      if ("counts" in of) this.#histogram(as.name, labels, of);
      else this.#add(`${as.name}_total`, labels, as.unit === "usd" ? dollars(of.nano) : of.value);
    }
  }

  /** The series whose last label is this value, without that label; `sum`: as counters of their sums. */
  part(series: Series<Histogram>, as: Family, only: string, sum = false): void {
    const all = series.all.filter(({ values }) => values.at(-1) === only);
    if (all.length === 0) return;
    this.#head(as);
    for (const { values, of } of all) {
      const labels = pairs(as.labels, values);
      if (sum) this.#add(`${as.name}_total`, labels, of.sum);
      else this.#histogram(as.name, labels, of);
    }
  }

  read(family: Family, samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    this.#head(family);
    const name = `${family.name}${SUFFIX[family.type] ?? ""}`;
    for (const [values, value] of samples)
      this.#add(
        name,
        pairs(family.labels, values),
        typeof value === "bigint" ? dollars(value) : value,
      );
  }

  distribution(family: Family, { count, sum, upTo }: Distribution): void {
    this.#head(family);
    const { name } = family;
    for (const [le, at] of upTo) this.#add(`${name}_bucket`, `le="${bound(le)}"`, at);
    this.#add(`${name}_bucket`, 'le="+Inf"', count);
    this.#add(`${name}_count`, "", count);
    this.#add(`${name}_sum`, "", sum);
  }

  #head({ name, type, unit, help }: Family): void {
    const lines = this.#lines;
    const suffix = SUFFIX[type] ?? "";
    if (this.#openMetrics) {
      lines.push(`# TYPE ${name} ${type}`);
      if (unit !== undefined) lines.push(`# UNIT ${name} ${unit}`);
      lines.push(`# HELP ${name} ${help}`);
    } else {
      lines.push(`# HELP ${name}${suffix} ${help}`);
      lines.push(`# TYPE ${name}${suffix} ${type === "info" ? "gauge" : type}`);
    }
  }

  #histogram(name: string, labels: string, { bounds, counts, sum, exemplars }: Histogram): void {
    const before = labels === "" ? "" : `${labels},`;
    let upTo = 0;
    for (let i = 0; i <= bounds.length; i++) {
      upTo += counts[i]!;
      const le = i < bounds.length ? bound(bounds[i]!) : "+Inf";
      const example = this.#openMetrics ? exemplars?.[i] : undefined;
      const more = example
        ? ` # {trace_id="${example.trace}"} ${example.value} ${example.at / 1_000}`
        : "";
      this.#lines.push(`${name}_bucket{${before}le="${le}"} ${upTo}${more}`);
    }
    this.#add(`${name}_count`, labels, upTo);
    this.#add(`${name}_sum`, labels, sum);
  }

  #add(name: string, labels: string, value: number | string): void {
    this.#lines.push(labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`);
  }

  end(): string {
    if (this.#openMetrics) this.#lines.push("# EOF");
    return `${this.#lines.join("\n")}\n`;
  }
}

const SUFFIX: Readonly<Partial<Record<Family["type"], string>>> = {
  counter: "_total",
  info: "_info",
};

const pairs = (labels: readonly string[], values: readonly string[]): string =>
  labels.map((label, i) => `${label}="${escaped(values[i] ?? "")}"`).join(",");
