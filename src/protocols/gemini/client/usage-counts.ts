// Accumulates the counts that chunks report, for the decoder and for passthrough mode.
import type { Price } from "../../../model/facts.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { asObject } from "../../json-values.ts";
import { GeminiToolCounts } from "../tool-counts.ts";
import { maxCounts, usageOf } from "../usage.ts";

export class ReportedCounts {
  /** Whether a count arrived with or after the finish reason. Earlier counts are incomplete. */
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

  /** Adds a chunk and returns the usage if it changed. */
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
