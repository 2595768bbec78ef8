// Counts of an answer as its chunks report them, for a decoder and for a relay alike.
import type { Price } from "../../../model/facts.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { object } from "../../json.ts";
import { GeminiToolCounts } from "../tool-counts.ts";
import { mostOf, usageOf } from "../usage.ts";

export class ReportedCounts {
  /** A count came with the end, or after it: what was counted before is not all of it. */
  final = false;
  #counts: JsonObject | undefined;
  readonly #tools = new GeminiToolCounts();
  #told = "";
  readonly #price: Opt<Price>;
  readonly #draws: boolean;

  constructor(price: Opt<Price>, draws: boolean) {
    this.#price = price;
    this.#draws = draws;
  }

  /** What a chunk changes of them; undefined: nothing. */
  add(chunk: JsonObject, ended: boolean): Usage | undefined {
    this.#tools.chunk(chunk);
    const counts = object(chunk["usageMetadata"]);
    if (counts) {
      this.#counts = mostOf(this.#counts ?? {}, counts);
      this.final ||= ended;
    }
    return this.changed();
  }

  changed(): Usage | undefined {
    const tokens =
      this.#counts &&
      usageOf(this.#counts, { price: this.#price, draws: this.#draws, ended: this.final });
    const usage = { ...tokens, ...this.#tools.usage };
    if (Object.keys(usage).length === 0) return undefined;
    const told = JSON.stringify(usage);
    if (told === this.#told) return undefined;
    this.#told = told;
    return usage;
  }
}
