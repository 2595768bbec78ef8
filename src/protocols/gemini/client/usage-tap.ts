// Reports start, content, usage, and end of a response to the host in passthrough mode.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Body, HeadersIn, Json, JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext, PassthroughSink } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, parseNumber, asObject, asObjects, asText } from "../../json-values.ts";
import { parseFinishReason } from "../constants.ts";
import type { Price } from "../../../model/facts.ts";
import { GeminiToolCounts, maxCounts, usageOf } from "../usage.ts";

export class UsageTap {
  readonly #sink: PassthroughSink;
  readonly #counts: ReportedCounts;
  readonly #tier: string | undefined;
  #id: string | undefined;
  #model: string | undefined;
  #hasContent = false;
  #textBytes = 0;
  #calls = false;
  #reason: FinishReason | undefined;
  /** Indexes of the candidates that have ended. */
  readonly #ends = new Set<unknown>();
  readonly #answers: number;

  constructor(sink: PassthroughSink, to: ResponseContext, tier: string | undefined) {
    this.#sink = sink;
    this.#counts = new ReportedCounts(to.info?.price, false);
    this.#tier = tier;
    this.#answers = candidatesIn(to.body);
  }

  /** Whether all candidates have ended. */
  get isEnded(): boolean {
    return this.#reason !== undefined && this.#ends.size >= this.#answers;
  }

  /** Reads a chunk. Throws if it is an error. */
  chunk(raw: Json): JsonObject {
    if (findErrorBody(raw)) throwParsedError(raw);
    const chunk =
      asObject(raw) ??
      fail("upstream", "The provider's response contains a chunk that is not a JSON object.", {
        code: "bad_stream",
      });
    this.#model ??= asText(chunk["modelVersion"]);
    const id = asText(chunk["responseId"]);
    if (this.#id === undefined && (id || chunk["candidates"] || chunk["usageMetadata"]))
      this.#sink.reportStart((this.#id = id ?? ""));
    this.#textBytes += textBytesIn(chunk);
    for (const candidate of asObjects(chunk["candidates"])) this.#candidate(candidate);
    // A blocked prompt has no candidates. The chunk that reports it is the complete response.
    if (asObject(chunk["promptFeedback"])?.["blockReason"] && !chunk["candidates"]) this.#blocked();
    const usage = this.#counts.add(chunk, this.#reason !== undefined);
    if (usage)
      this.#sink.reportUsage({ type: "usage", usage, model: this.#model, tier: this.#tier });
    return chunk;
  }

  /** Whether this is the first chunk with content that a client would display. */
  isFirstContent(chunk: JsonObject): boolean {
    if (this.#hasContent || !hasContent(chunk)) return false;
    return (this.#hasContent = true);
  }

  /** Reports the text since the last call, once per write, however many events it contained. */
  reportText(): void {
    if (this.#hasContent && this.#textBytes > 0) {
      this.#sink.reportContent(this.#textBytes);
      this.#textBytes = 0;
    }
  }

  /** Reports the end and returns the settled usage if the provider reported no final counts. */
  finish(): Usage | undefined {
    const reason =
      this.#reason ??
      fail("upstream", "The provider's response ended before it was complete.", {
        code: "truncated",
      });
    if (this.#textBytes > 0) this.#sink.reportContent(this.#textBytes);
    this.#textBytes = 0;
    const settled = this.#sink.reportFinish(reason);
    return this.#counts.isFinal ? undefined : settled;
  }

  #blocked(): void {
    this.#reason ??= "filtered";
    for (let i = 0; i < this.#answers && i < 64; i++) this.#ends.add(i);
  }

  /**
   * Reads a candidate. The finish reason of the first candidate counts, and a later finish reason
   * replaces it.
   */
  #candidate(candidate: JsonObject): void {
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      this.#calls ||= asObject(asObject(part)?.["functionCall"]) !== undefined;
    const reason = asText(candidate["finishReason"]);
    if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return;
    const index = candidate["index"] ?? 0;
    this.#ends.add(index);
    if (index !== 0) return;
    const meant = parseFinishReason(reason, this.#calls).reason;
    // Clients of this protocol recognize such an end by its finish reason.
    this.#reason = meant === "broken" ? "other" : meant;
  }
}

/**
 * Returns the service tier from a response header. It is the tier that was actually used and is
 * billed.
 */
export function tierOf(headers: HeadersIn): string | undefined {
  const tier = headers["x-gemini-service-tier"];
  return typeof tier === "string" && tier !== "" ? tier : undefined;
}

/**
 * Returns the requested number of candidates, from the one field that this API documents, in either
 * spelling.
 */
function candidatesIn(body: Body): number {
  const config = asObject(body["generationConfig"] ?? body["generation_config"]);
  return parseNumber(config?.["candidateCount"] ?? config?.["candidate_count"]) ?? 1;
}

// Reads facts of a chunk that decoding and passthrough mode both need: its error, text, and usage.

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
function textBytesIn(chunk: JsonObject): number {
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
const hasContent = (chunk: JsonObject): boolean =>
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
  #lastReported = "";
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
    if (serialized === this.#lastReported) return undefined;
    this.#lastReported = serialized;
    return usage;
  }
}
