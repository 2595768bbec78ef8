// What passes by in passthrough mode, told to the host.
import { fail } from "../../../model/error.ts";
import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Body, HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext, PassthroughSink } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, parseNumber, asObject, asObjects, asText } from "../../json-values.ts";
import { parseFinishReason } from "../constants.ts";
import { hasContent, textBytesIn } from "./text-size.ts";
import { ReportedCounts } from "./usage-counts.ts";
import { findErrorBody } from "./error-body.ts";

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
  /** Of several answers, those that have ended. */
  readonly #ends = new Set<unknown>();
  readonly #answers: number;

  constructor(sink: PassthroughSink, to: ResponseContext, tier: string | undefined) {
    this.#sink = sink;
    this.#counts = new ReportedCounts(to.info?.price, false);
    this.#tier = tier;
    this.#answers = candidatesIn(to.body);
  }

  /** The end of all of it has been named. */
  get isEnded(): boolean {
    return this.#reason !== undefined && this.#ends.size >= this.#answers;
  }

  /** Throws what upstream says went wrong. */
  chunk(raw: Json): JsonObject {
    if (findErrorBody(raw)) throwParsedError(raw);
    const chunk =
      asObject(raw) ??
      fail("upstream", "A piece of the provider's answer is not a JSON object.", {
        code: "bad_stream",
      });
    this.#model ??= asText(chunk["modelVersion"]);
    const id = asText(chunk["responseId"]);
    if (this.#id === undefined && (id || chunk["candidates"] || chunk["usageMetadata"]))
      this.#sink.reportStart((this.#id = id ?? ""));
    this.#textBytes += textBytesIn(chunk);
    for (const candidate of asObjects(chunk["candidates"])) this.#candidate(candidate);
    // A prompt that was blocked has no candidates: its answer says so, and is whole.
    if (asObject(chunk["promptFeedback"])?.["blockReason"] && !chunk["candidates"]) this.#blocked();
    const usage = this.#counts.add(chunk, this.#reason !== undefined);
    if (usage)
      this.#sink.reportUsage({ type: "usage", usage, model: this.#model, tier: this.#tier });
    return chunk;
  }

  /** Whether this is the first that a client would show. */
  isFirstContent(chunk: JsonObject): boolean {
    if (this.#hasContent || !hasContent(chunk)) return false;
    return (this.#hasContent = true);
  }

  /** Once a write, however many events it had. */
  reportText(): void {
    if (this.#hasContent && this.#textBytes > 0) {
      this.#sink.reportContent(this.#textBytes);
      this.#textBytes = 0;
    }
  }

  /** What was settled, where upstream has not counted. */
  finish(): Usage | undefined {
    const reason =
      this.#reason ??
      fail("upstream", "The provider's answer ended before it was finished.", {
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

  /** The first candidate's end counts; an end that is named again takes its place. */
  #candidate(candidate: JsonObject): void {
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      this.#calls ||= asObject(asObject(part)?.["functionCall"]) !== undefined;
    const reason = asText(candidate["finishReason"]);
    if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return;
    const index = candidate["index"] ?? 0;
    this.#ends.add(index);
    if (index !== 0) return;
    const meant = parseFinishReason(reason, this.#calls).reason;
    // Clients of this wire know such an end by its name.
    this.#reason = meant === "broken" ? "other" : meant;
  }
}

/** A head tells how the work was really ranked, which is what is billed. */
export function tierOf(headers: HeadersIn): string | undefined {
  const tier = headers["x-gemini-service-tier"];
  return typeof tier === "string" && tier !== "" ? tier : undefined;
}

/** How many answers end: by the one name that this API documents, in either spelling. */
function candidatesIn(body: Body): number {
  const config = asObject(body["generationConfig"] ?? body["generation_config"]);
  return parseNumber(config?.["candidateCount"] ?? config?.["candidate_count"]) ?? 1;
}
