// Counts of an answer as its chunks report them, for a decoder and for a relay alike.
import type { Price } from "../../../model/facts.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { asObject } from "../../json-values.ts";
import { GeminiToolCounts } from "../tool-counts.ts";
import { maxCounts, usageOf } from "../usage.ts";

export class ReportedCounts {
  /** A count came with the end, or after it: what was counted before is not all of it. */
  isFinal = false;
  #counts: JsonObject | undefined;
  readonly #tools = new GeminiToolCounts();
  #told = "";
  readonly #price: Opt<Price>;
  readonly #isImageRequest: boolean;

  constructor(price: Opt<Price>, draws: boolean) {
    this.#price = price;
    this.#isImageRequest = draws;
  }

  /** What a chunk changes of them; undefined: nothing. */
  add(chunk: JsonObject, ended: boolean): Usage | undefined {
    this.#tools.chunk(chunk);
    const counts = asObject(chunk["usageMetadata"]);
    if (counts) {
      this.#counts = maxCounts(this.#counts ?? {}, counts);
      this.isFinal ||= ended;
    }
    return this.changed();
  }

  changed(): Usage | undefined {
    const tokens =
      this.#counts &&
      usageOf(this.#counts, {
        price: this.#price,
        isImageRequest: this.#isImageRequest,
        isFinal: this.isFinal,
      });
    const usage = { ...tokens, ...this.#tools.usage };
    if (Object.keys(usage).length === 0) return undefined;
    const serialized = JSON.stringify(usage);
    if (serialized === this.#told) return undefined;
    this.#told = serialized;
    return usage;
  }
}
