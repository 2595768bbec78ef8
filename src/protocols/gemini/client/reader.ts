import { fail } from "../../../model/error.ts";
import type { ModelEvent, OpenBlock } from "../../../model/event.ts";
import type { Media } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { findErrorBody, ReportedCounts } from "./usage-tap.ts";
import { digest, parseFinishReason, ID } from "../constants.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { BOUNDS } from "../../../lib/bounds.ts";

/**
 * Position of a signature:
 * - `part`: on a call or an image
 * - `words`: signs the whole text of its block
 * - `after`: on the last text of a block, or on an empty part after it
 * - `empty`: on a part without any text before it
 */
export type SignaturePlace = "part" | "words" | "after" | "empty";

export interface GeminiReaderOptions {
  /** Service tier that was actually used. */
  tier: string | undefined;
  /** Whether images were requested. */
  isImageRequest: boolean;
}

interface Open {
  index: number;
  kind: "text" | "reasoning";
  citations: CitationIndex;
  signature: { data: string; at: SignaturePlace } | undefined;
}

/**
 * Reads a response chunk by chunk. A non-streaming response is a stream of one chunk. This protocol
 * has parts instead of blocks. Consecutive text of one channel becomes one block, signed or not,
 * because clients use the last block as the response.
 */
export class GeminiReader {
  #finished = false;
  readonly #emit: (event: ModelEvent) => void;
  readonly #of: Pick<CallContext, "model" | "info">;
  readonly #tier: string | undefined;
  readonly #counts: ReportedCounts;
  readonly #calls = new Set<string>();
  readonly #cited = new Set<string>();
  #open: Open | undefined;
  #next = 0;
  #started = false;
  #content = false;
  #id = "";
  #model: string | undefined;
  #end: { reason: string; message: string | undefined } | undefined;
  #logprobs: readonly Json[] | undefined;

  constructor(
    emit: (event: ModelEvent) => void,
    of: Pick<CallContext, "model" | "info">,
    { tier, isImageRequest }: GeminiReaderOptions,
  ) {
    this.#emit = emit;
    this.#of = of;
    this.#tier = tier;
    this.#counts = new ReportedCounts(of.info.price, isImageRequest);
  }

  chunk(raw: Json): void {
    if (findErrorBody(raw)) throwParsedError(raw);
    const chunk =
      asObject(raw) ??
      fail("upstream", "The provider's response contains a chunk that is not a JSON object.", {
        code: "bad_stream",
      });
    const candidates = asList(chunk["candidates"]);
    const blocked = asText(asObject(chunk["promptFeedback"])?.["blockReason"]);
    if (blocked && candidates.length === 0 && !this.#content) failBlockedPrompt(blocked, chunk);
    this.#start(chunk);
    // The gateway never requests several candidates in this mode.
    const first = candidates.map(asObject).find((c) => (c?.["index"] ?? 0) === 0);
    if (first) this.#candidate(first);
    this.#count(this.#counts.add(chunk, this.#end !== undefined));
  }

  /**
   * Called at the end of the stream. A response is complete if it had a finish reason. Only the
   * last finish reason counts.
   */
  end(): void {
    if (this.#finished) return;
    const end =
      this.#end ??
      fail("upstream", "The provider's response ended before it was complete.", {
        code: "truncated",
      });
    this.#close();
    this.#finished = true;
    const { reason, detail } = parseFinishReason(end.reason, this.#calls.size > 0);
    const words = end.message ?? `The model stopped for this reason: ${end.reason}.`;
    if (reason === "broken") return fail("upstream", words, { code: end.reason.toLowerCase() });
    if (reason === "other" && !this.#content)
      return fail("upstream", words, { code: "empty_answer" });
    this.#emit({ type: "finish", reason, ...(detail !== undefined && { detail }) });
  }

  #start(chunk: JsonObject): void {
    if (this.#started || !(chunk["candidates"] || chunk["usageMetadata"] || chunk["responseId"]))
      return;
    this.#started = true;
    this.#id = asText(chunk["responseId"]) ?? "";
    this.#model = asText(chunk["modelVersion"]);
    this.#emit({ type: "start", id: this.#id || undefined, model: this.#model });
  }

  #candidate(candidate: JsonObject): void {
    this.#logprobs = parseLogprobs(candidate["logprobsResult"]);
    const parts = asList(asObject(candidate["content"])?.["parts"]);
    for (const raw of parts) {
      const part = asObject(raw);
      if (part) this.#part(part);
    }
    this.#cite(candidate);
    const reason = asText(candidate["finishReason"]);
    if (reason && reason !== "FINISH_REASON_UNSPECIFIED")
      this.#end = { reason, message: asText(candidate["finishMessage"]) };
  }

  #part(part: JsonObject): void {
    const signature = asText(part["thoughtSignature"]) || undefined;
    const call = asObject(part["functionCall"]);
    if (call) return this.#call(call, signature);
    const inline = asObject(part["inlineData"]);
    if (inline) return this.#media(part, inline, signature);
    const partText = asText(part["text"]) ?? "";
    if ("text" in part || !hasUnreadContent(part)) return this.#say(part, partText, signature);
    // Runs of hosted tools and unknown parts, which may be newer than the gateway, are sent back
    // unchanged.
    this.#alone({ type: "opaque", origin: ID, raw: part }, undefined, undefined);
  }

  #say(part: JsonObject, textContent: string, signature: string | undefined): void {
    const kind = part["thought"] === true ? "reasoning" : "text";
    if (textContent === "") {
      if (!signature) return;
      if (this.#open?.kind === kind) {
        this.#open.signature = { data: signature, at: "after" };
        return;
      }
      // A signature without text must come back as its own part.
      const at = kind === "reasoning" ? "after" : "empty";
      return this.#alone({ type: "reasoning", summary: true }, signature, at);
    }
    if (this.#open?.kind !== kind) {
      this.#close();
      const index = this.#next++;
      this.#open = { index, kind, citations: new CitationIndex(), signature: undefined };
      const block: OpenBlock = kind === "text" ? { type: kind } : { type: kind, summary: true };
      this.#emit({ type: "open", index, block });
    }
    const open = this.#open;
    const first = open.citations.empty;
    open.citations.add(textContent);
    this.#content ||= kind === "text";
    const logprobs = kind === "text" ? this.#logprobs : undefined;
    if (logprobs) this.#logprobs = undefined;
    this.#emit({
      type: "delta",
      index: open.index,
      text: textContent,
      ...(logprobs && { logprobs }),
    });
    if (signature) open.signature = { data: signature, at: first ? "words" : "after" };
    // After more text, the signature no longer covers the whole block.
    else if (open.signature) open.signature.at = "after";
  }

  #call(call: JsonObject, signature: string | undefined): void {
    const name =
      asText(call["name"]) ||
      fail("upstream", "The provider returned a tool call without a name.", { code: "bad_stream" });
    const own = asText(call["id"]) || undefined;
    // Some models repeat their calls.
    if (own !== undefined && this.#calls.has(own)) return;
    const args = JSON.stringify(asObject(call["args"]) ?? {});
    // A call without an ID gets one that is derived from the response, so that the same response
    // yields the same ID.
    const seed = this.#id || `${name}${args}`;
    const id = own ?? `call_${digest(`${seed}:${this.#calls.size}`, 24)}`;
    this.#calls.add(id);
    this.#alone({ type: "call", id, name, tool: "function" }, signature, "part", (index) =>
      this.#emit({ type: "delta", index, text: args }),
    );
  }

  #media(part: JsonObject, inline: JsonObject, signature: string | undefined): void {
    // Draft images that a model creates while it reasons are not part of the response.
    if (part["thought"] === true) return;
    const mime = asText(inline["mimeType"]) ?? "";
    const kind = mime.startsWith("image/") ? "image" : mime.startsWith("audio/") ? "audio" : "";
    if (kind === "")
      return this.#alone({ type: "opaque", origin: ID, raw: part }, undefined, undefined);
    const media: Media = { mime, base64: asText(inline["data"]) ?? "" };
    this.#alone({ type: kind }, signature, "part", (index) =>
      this.#emit({ type: "media", index, media }),
    );
  }

  /** Emits a block that consists of one part. */
  #alone(
    block: OpenBlock,
    signature: string | undefined,
    at: SignaturePlace | undefined,
    inside?: (index: number) => void,
  ): void {
    this.#close();
    const index = this.#next++;
    this.#content ||= block.type !== "reasoning";
    this.#emit({ type: "open", index, block });
    // The proof comes first, so that a call's signature is sent together with its name. Most
    // clients read the signature only there.
    if (signature && at) this.#prove(index, signature, at);
    inside?.(index);
    this.#emit({ type: "close", index });
  }

  #prove(index: number, data: string, kind: SignaturePlace): void {
    const model = this.#model ?? this.#of.model;
    this.#emit({ type: "proof", index, proof: { origin: ID, kind, data, model } });
  }

  /**
   * Emits citations. A citation that arrives after its text block closed has no block to attach to.
   */
  #cite(candidate: JsonObject): void {
    const open = this.#open;
    if (open?.kind !== "text") return;
    for (const citation of open.citations.citations(candidate)) {
      const key = keyOf(citation);
      if (this.#cited.has(key)) continue;
      this.#cited.add(key);
      this.#emit({ type: "cite", index: open.index, citation });
    }
  }

  #count(usage: Usage | undefined): void {
    if (usage) this.#emit({ type: "usage", usage, model: this.#model, tier: this.#tier });
  }

  #close(): void {
    const open = this.#open;
    if (!open) return;
    this.#open = undefined;
    if (open.signature) this.#prove(open.index, open.signature.data, open.signature.at);
    this.#emit({ type: "close", index: open.index });
  }
}

/**
 * Whether a part contains more than a signature and the thought flag, that is, content that this
 * codec does not read.
 */
const hasUnreadContent = (part: JsonObject): boolean => {
  for (const key in part) if (key !== "thoughtSignature" && key !== "thought") return true;
  return false;
};

const keyOf = (cited: Citation): string => `${cited.start_index}:${cited.end_index}:${cited.url}`;

/** Throws an error for a blocked prompt. Google reports it with status 200 and no content. */
function failBlockedPrompt(reason: string, chunk: JsonObject): never {
  const message = asText(asObject(chunk["promptFeedback"])?.["blockReasonMessage"]);
  return fail("content_policy", message || `The provider rejected the prompt: ${reason}.`, {
    code: "content_policy_violation",
    details: { reason },
  });
}

// Decodes log probabilities into the form that clients of chat completions and responses read.

/** Returns one entry per token, or undefined if no probabilities were reported. */
function parseLogprobs(raw: unknown): readonly Json[] | undefined {
  const result = asObject(raw);
  const chosen = asList(result?.["chosenCandidates"]);
  if (chosen.length === 0) return undefined;
  const top = asList(result!["topCandidates"]);
  return chosen.map((one, i) => ({
    ...token(one),
    top_logprobs: asList(asObject(top[i])?.["candidates"]).map(token),
  }));
}

function token(raw: Json) {
  const entry = asObject(raw);
  const word = asText(entry?.["token"]) ?? "";
  const logprob = entry?.["logProbability"];
  return {
    token: word,
    // The log probability of a certain token is 0, which this protocol omits.
    logprob: typeof logprob === "number" ? logprob : 0,
    bytes: [...Buffer.from(word)],
  };
}

// Converts grounding metadata into citations. Offsets in this protocol count UTF-8 bytes. All other
// protocols count characters.

/** A citation in the form of OpenAI's protocols. Indexes count code points of the text block. */
interface Citation {
  readonly [member: string]: Json;
  readonly type: "url_citation";
  readonly start_index: number;
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

/** Index of a growing text. Each byte is read once, however often the text is cited. */
class CitationIndex {
  #new: string[] = [];
  #bytes = Buffer.alloc(0);
  #length = 0;
  /** Number of code points that begin before each multiple of `INDEX_STRIDE` bytes. */
  readonly #points: number[] = [0];
  /** Remaining bytes that may be searched for cited text that is not at its stated offset. */
  #searchBudget: number = BOUNDS.citationSearch.max;

  get empty(): boolean {
    return this.#length === 0 && this.#new.length === 0;
  }

  add(textContent: string): void {
    this.#new.push(textContent);
  }

  /** Returns all citations of a candidate that refer to this text. */
  citations(candidate: JsonObject): Citation[] {
    const grounding = asObject(candidate["groundingMetadata"]);
    const recited = asObject(candidate["citationMetadata"]);
    if (!grounding && !recited) return [];
    this.#read();
    const found: Citation[] = [];
    const add = (from: number, to: number, source: JsonObject | undefined) => {
      const url = asText(source?.["uri"]);
      if (!url) return;
      const start_index = this.#pointsIn(from);
      const end_index = this.#pointsIn(to);
      const title = asText(source!["title"]) ?? "";
      found.push({ type: "url_citation", start_index, end_index, url, title });
    };
    const chunks = asList(grounding?.["groundingChunks"]);
    for (const raw of asList(grounding?.["groundingSupports"])) {
      const support = asObject(raw);
      const range = this.#rangeOf(asObject(support?.["segment"]));
      if (!range) continue;
      for (const i of asList(support?.["groundingChunkIndices"])) {
        const chunk = asObject(chunks[Number(i)]);
        add(...range, asObject(chunk?.["web"]) ?? asObject(chunk?.["maps"]));
      }
    }
    for (const raw of [
      ...asList(recited?.["citationSources"]),
      ...asList(recited?.["citations"]),
    ]) {
      const source = asObject(raw);
      add(count(source?.["startIndex"]), count(source?.["endIndex"]), source);
    }
    return found;
  }

  /** Indexes the text that was added since the last call. */
  #read(): void {
    if (this.#new.length === 0) return;
    const more = Buffer.from(this.#new.join(""));
    this.#new = [];
    const length = this.#length + more.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(2 * length);
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    more.copy(this.#bytes, this.#length);
    this.#length = length;
    for (let at = this.#points.length * INDEX_STRIDE; at <= length; at += INDEX_STRIDE)
      this.#points.push(this.#points.at(-1)! + countCodePoints(this.#bytes, at - INDEX_STRIDE, at));
  }

  /** Returns the number of code points that begin before this byte. */
  #pointsIn(before: number): number {
    const end = Math.min(before, this.#length);
    const known = Math.floor(end / INDEX_STRIDE);
    return this.#points[known]! + countCodePoints(this.#bytes, known * INDEX_STRIDE, end);
  }

  /**
   * Returns the byte range of a segment. Its offsets are relative to the part, to the response, or
   * to the text without reasoning. A segment repeats the cited text, so if the text is not at its
   * offset, it is searched for.
   */
  #rangeOf(segment: JsonObject | undefined): [from: number, to: number] | undefined {
    if (!segment) return undefined;
    const bytes = this.#bytes.subarray(0, this.#length);
    const from = count(segment["startIndex"]);
    const to = count(segment["endIndex"]);
    const words = Buffer.from(asText(segment["text"]) ?? "");
    if (words.length === 0) return to > 0 && to <= bytes.length ? [from, to] : undefined;
    if (bytes.subarray(from, to).equals(words)) return [from, to];
    if (this.#searchBudget <= 0) return undefined;
    const at = bytes.indexOf(words);
    this.#searchBudget -= at < 0 ? bytes.length : at;
    return at < 0 ? undefined : [at, at + words.length];
  }
}

const INDEX_STRIDE = 64;

/** Returns the number of code points that begin in [from, to). */
function countCodePoints(bytes: Buffer, from: number, to: number): number {
  let points = 0;
  for (let i = from; i < to; i++) if ((bytes[i]! & 0xc0) !== 0x80) points++;
  return points;
}

const count = (v: unknown): number =>
  Number.isSafeInteger(v) && (v as number) > 0 ? (v as number) : 0;
