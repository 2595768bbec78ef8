// Everything that was counted and everything that is read, in one order, to whatever it is told to.
import type { Context } from "tollgate/plugin";
import type { Spelling } from "../genai.ts";
import { READ } from "./families.ts";
import { budgets, Dates, gateway } from "./gauges.ts";
import { named } from "./genai-families.ts";
import type { Count, Histogram, Series } from "./series.ts";
import type { Sample, Sink } from "./sink.ts";
import type { Tally } from "./tally.ts";

type Known = Pick<Context, "readings" | "catalogue">;

export class Everything {
  readonly #ctx: Known;
  readonly #tally: Tally;
  readonly #spellings: readonly Spelling[];
  readonly #dates: Dates;

  constructor(ctx: Known, tally: Tally, spellings: readonly Spelling[]) {
    this.#ctx = ctx;
    this.#tally = tally;
    this.#spellings = spellings;
    this.#dates = new Dates(ctx.catalogue);
  }

  async tell(out: Sink): Promise<void> {
    const readings = await this.#ctx.readings();
    const { counted, genAi } = this.#tally;
    // The door's refusals are counted where they happen; those behind it came as records.
    const refusals = this.#refusals(readings.refusals);
    const all = Object.values(counted) as readonly (Series<Count> | Series<Histogram>)[];
    for (const series of all) if (series !== counted.refusals) out.counted(series);
    out.read(counted.refusals.family, refusals);
    const theirs = genAi ? named(genAi, this.#spellings) : [];
    for (const { series, family, only, sum } of theirs)
      if (only === undefined) out.counted(series, family);
      else out.part(series as Series<Histogram>, family, only, sum);
    gateway(out, readings, this.#tally);
    budgets(out, this.#tally, readings.at);
    this.#dates.write(out);
    out.read(READ.folded, [
      ...all.map((series): Sample => [[series.family.name], series.folded()]),
      ...theirs.map(({ series, family, only }): Sample => [[family.name], series.folded(only)]),
    ]);
  }

  #refusals(door: Readonly<Record<string, number>>): readonly Sample[] {
    const byCode = new Map(Object.entries(door));
    for (const { values, of } of this.#tally.counted.refusals.all) {
      const code = values[0]!;
      byCode.set(code, (byCode.get(code) ?? 0) + of.value);
    }
    return Array.from(byCode, ([code, count]) => [[code], count] as const);
  }
}
