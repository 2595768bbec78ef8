// Writes all counted and read metrics to a sink, in a fixed order.
import type { Context } from "tollgate/plugin";
import type { NamingVersion } from "../genai-names.ts";
import { ExpiryReader, writeReadMetrics } from "./gauges.ts";
import { nameSeries } from "./genai-families.ts";
import type { Counter, Histogram, Series, Sample, MetricsSink } from "./series.ts";
import type { MetricsTally } from "./tally.ts";

type MetricsContext = Pick<Context, "stats" | "catalog">;

export class MetricsWriter {
  readonly #ctx: MetricsContext;
  readonly #tally: MetricsTally;
  readonly #namingVersions: readonly NamingVersion[];
  readonly #expiries: ExpiryReader;

  constructor(ctx: MetricsContext, tally: MetricsTally, spellings: readonly NamingVersion[]) {
    this.#ctx = ctx;
    this.#tally = tally;
    this.#namingVersions = spellings;
    this.#expiries = new ExpiryReader(ctx.catalog);
  }

  async writeTo(out: MetricsSink): Promise<void> {
    const stats = await this.#ctx.stats();
    const { counted, genAi } = this.#tally;
    // Requests rejected before routing are counted by the gateway. Requests rejected later arrive
    // as records.
    const refusals = this.#rejectionSamples(stats.rejections);
    const all = Object.values(counted) as readonly (Series<Counter> | Series<Histogram>)[];
    for (const series of all) if (series !== counted.rejections) out.writeSeries(series);
    out.writeSamples(counted.rejections.family, refusals);
    const theirs = genAi ? nameSeries(genAi, this.#namingVersions) : [];
    for (const { series, family, lastLabelValue, asSumCounter } of theirs)
      if (lastLabelValue === undefined) out.writeSeries(series, family);
      else out.writeFiltered(series as Series<Histogram>, family, lastLabelValue, asSumCounter);
    writeReadMetrics(out, {
      stats,
      tally: this.#tally,
      expiries: this.#expiries.read(),
      budgets: this.#tally.budgets.mostUsed(stats.at),
      overflows: [
        ...all.map((series): Sample => [[series.family.name], series.overflowCount()]),
        ...theirs.map(({ series, family, lastLabelValue }): Sample => [
          [family.name],
          series.overflowCount(lastLabelValue),
        ]),
      ],
    });
  }

  #rejectionSamples(door: Readonly<Record<string, number>>): readonly Sample[] {
    const byCode = new Map(Object.entries(door));
    for (const { values, of } of this.#tally.counted.rejections.all) {
      const code = values[0]!;
      byCode.set(code, (byCode.get(code) ?? 0) + of.value);
    }
    return Array.from(byCode, ([code, count]) => [[code], count] as const);
  }
}
