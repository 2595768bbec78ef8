// One scrape: everything that was counted and everything that is read, as text. It is kept for a second, so that several scrapers
// cost no more than one.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "tollgate/plugin";
import type { Spelling } from "../genai.ts";
import { READ } from "./families.ts";
import { budgets, Dates, gateway } from "./gauges.ts";
import { named } from "./genai-families.ts";
import type { Count, Histogram, Series } from "./series.ts";
import type { Tally } from "./tally.ts";
import { Exposition, type Form } from "./text.ts";

const zipped = promisify(gzip);
const KEPT_MS = 1_000;

interface Kept {
  readonly at: number;
  readonly text: Promise<Buffer>;
  zip: Promise<Buffer> | undefined;
}

export class Scrape {
  readonly #ctx: Pick<Context, "readings" | "catalogue">;
  readonly #tally: Tally;
  readonly #spellings: readonly Spelling[];
  readonly #dates: Dates;
  readonly #kept = new Map<Form, Kept>();

  constructor(
    ctx: Pick<Context, "readings" | "catalogue">,
    tally: Tally,
    spellings: readonly Spelling[],
  ) {
    this.#ctx = ctx;
    this.#tally = tally;
    this.#spellings = spellings;
    this.#dates = new Dates(ctx.catalogue);
  }

  async body(form: Form, compressed: boolean): Promise<Buffer> {
    const kept = this.#fresh(form);
    if (!compressed) return kept.text;
    return (kept.zip ??= kept.text.then((text) => zipped(text, { level: 1 })));
  }

  #fresh(form: Form): Kept {
    const now = performance.now();
    const before = this.#kept.get(form);
    if (before && now - before.at < KEPT_MS) return before;
    const text = this.#write(form).then((written) => Buffer.from(written));
    // What went wrong is not kept.
    text.catch(() => this.#kept.delete(form));
    const kept: Kept = { at: now, text, zip: undefined };
    this.#kept.set(form, kept);
    return kept;
  }

  async #write(form: Form): Promise<string> {
    const readings = await this.#ctx.readings();
    const { counted, genAi } = this.#tally;
    const out = new Exposition(form);
    // The door's refusals are counted where they happen; those behind it came as records.
    const refusals = this.#refusals(readings.refusals);
    const all = Object.values(counted) as readonly (Series<Count> | Series<Histogram>)[];
    for (const series of all) if (series !== counted.refusals) out.counted(series);
    out.read(counted.refusals.family, refusals);
    for (const { series, family, only, sum } of genAi ? named(genAi, this.#spellings) : [])
      if (only === undefined) out.counted(series, family);
      else out.part(series as Series<Histogram>, family, only, sum);
    gateway(out, readings, this.#tally);
    budgets(out, this.#tally, readings.at);
    this.#dates.write(out);
    out.read(
      READ.folded,
      all.map((series) => [[series.family.name], series.folded]),
    );
    return out.end();
  }

  #refusals(door: Readonly<Record<string, number>>) {
    const byCode = new Map(Object.entries(door));
    for (const { values, of } of this.#tally.counted.refusals.all) {
      const code = values[0]!;
      byCode.set(code, (byCode.get(code) ?? 0) + of.value);
    }
    return Array.from(byCode, ([code, count]) => [[code], count] as const);
  }
}
