// Reads facts of a chunk that decoding and passthrough mode both need: its error, text, and usage.
import type { Price } from "../../../model/facts.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import { GeminiToolCounts, maxCounts, usageOf } from "../usage.ts";
import { asObject, asList, asObjects, asText } from "../../json-values.ts";

/**
 * Returns the error in a JSON value, or undefined if it is not an error. In a stream, an error can
 * be a list with one element.
 */
export function findErrorBody(json: Json): JsonObject | undefined {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body?.["error"];
  if (typeof error === "string") return { message: error };
  return asObject(error);
}

/**
 * Returns the bytes of text in all candidates of a chunk. The usage of a truncated response is
 * estimated from it.
 */
export function textBytesIn(chunk: JsonObject): number {
  let bytes = 0;
  for (const candidate of asObjects(chunk["candidates"]))
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      bytes += size(asObject(part));
  return bytes;
}

function size(part: JsonObject | undefined): number {
  const partText = asText(part?.["text"]);
  if (partText !== undefined) return Buffer.byteLength(partText);
  const call = asObject(part?.["functionCall"]);
  return call ? Buffer.byteLength(JSON.stringify(call["args"] ?? {})) : 0;
}

/**
 * Whether a chunk contains something that a client would display or run. Reasoning counts. Empty
 * texts do not.
 */
export const hasContent = (chunk: JsonObject): boolean =>
  asObjects(chunk["candidates"]).some((candidate) =>
    asObjects(asObject(candidate["content"])?.["parts"]).some((part) =>
      Object.keys(part).some((key) => !NON_CONTENT_FIELDS.has(key) && part[key] !== ""),
    ),
  );

const NON_CONTENT_FIELDS: ReadonlySet<string> = new Set(["thought", "thoughtSignature"]);

/** Accumulates the counts that chunks report, for the decoder and for passthrough mode. */
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
