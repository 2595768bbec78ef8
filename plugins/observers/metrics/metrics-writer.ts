// Writes all counted and read metrics to a sink, in a fixed order.
import type { Context } from "tollgate/plugin";
import type { NamingVersion } from "../genai-names.ts";
import { READ_FAMILIES } from "./families.ts";
import { writeBudgetGauges, ExpiryGauges, writeGatewayGauges } from "./gauges.ts";
import { nameSeries } from "./genai-families.ts";
import type { Counter, Histogram, Series } from "./series.ts";
import type { Sample, MetricsSink } from "./metrics-sink.ts";
import type { MetricsTally } from "./tally.ts";

type MetricsContext = Pick<Context, "stats" | "catalog">;

export class MetricsWriter {
  readonly #ctx: MetricsContext;
  readonly #tally: MetricsTally;
  readonly #namingVersions: readonly NamingVersion[];
  readonly #dates: ExpiryGauges;

  constructor(ctx: MetricsContext, tally: MetricsTally, spellings: readonly NamingVersion[]) {
    this.#ctx = ctx;
    this.#tally = tally;
    this.#namingVersions = spellings;
    this.#dates = new ExpiryGauges(ctx.catalog);
  }

  async writeTo(out: MetricsSink): Promise<void> {
    const readings = await this.#ctx.stats();
    const { counted, genAi } = this.#tally;
    // Requests rejected before routing are counted by the gateway. Requests rejected later arrive
    // as records.
    const refusals = this.#rejectionSamples(readings.rejections);
    const all = Object.values(counted) as readonly (Series<Counter> | Series<Histogram>)[];
    for (const series of all) if (series !== counted.rejections) out.writeSeries(series);
    out.writeSamples(counted.rejections.family, refusals);
    const theirs = genAi ? nameSeries(genAi, this.#namingVersions) : [];
    for (const { series, family, lastLabelValue, asSumCounter } of theirs)
      if (lastLabelValue === undefined) out.writeSeries(series, family);
      else out.writeFiltered(series as Series<Histogram>, family, lastLabelValue, asSumCounter);
    writeGatewayGauges(out, readings, this.#tally);
    writeBudgetGauges(out, this.#tally, readings.at);
    this.#dates.write(out);
    out.writeSamples(READ_FAMILIES.overflow, [
      ...all.map((series): Sample => [[series.family.name], series.overflowCount()]),
      ...theirs.map(({ series, family, lastLabelValue }): Sample => [
        [family.name],
        series.overflowCount(lastLabelValue),
      ]),
    ]);
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
