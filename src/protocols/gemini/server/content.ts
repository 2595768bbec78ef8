// Encodes content for clients. The stream and the non-streaming response share these functions, so
// that both agree.
import type { Finish } from "../../../model/event.ts";
import type { Media } from "../../../model/request.ts";
import { inputTokens, type Usage } from "../../../model/usage.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { parseToolArguments, createNameRestorer } from "../../tool-calls.ts";
import { asList, asObject, asObjects, asText } from "../../json-values.ts";
import { ID, formatFinishReason } from "../constants.ts";

/** Returns a member by either of its names. */
const member = (of: JsonObject | undefined, name: string, snake: string): Json | undefined =>
  of?.[name] ?? of?.[snake];

/**
 * Whether the client requested the reasoning text. Older clients treat every text as the response,
 * so reasoning is sent only on request.
 */
export function showsThoughts(body: Body): boolean {
  const config = asObject(member(body as JsonObject, "generationConfig", "generation_config"));
  const thinking = asObject(member(config, "thinkingConfig", "thinking_config"));
  return member(thinking, "includeThoughts", "include_thoughts") === true;
}

/**
 * Returns a function that restores the tool names that the client declared. Other protocols may
 * have changed them.
 */
export function namesOf({ body }: ResponseContext): (name: string) => string {
  return createNameRestorer(() =>
    asObjects(body["tools"]).flatMap((tool) =>
      asList(member(tool, "functionDeclarations", "function_declarations")).flatMap(
        (one) => asText(asObject(one)?.["name"]) ?? [],
      ),
    ),
  );
}

/** Returns a call as one part. Returns undefined if its arguments are not an object. */
export function callPart(
  call: { id: string; name: string; tool: "function" | "custom"; args: string },
  signature: string | undefined,
): JsonObject | undefined {
  const args = call.tool === "custom" ? { input: call.args } : parseToolArguments(call.args);
  if (args === undefined) return undefined;
  return signedPart({ functionCall: { id: call.id, name: call.name, args } }, signature);
}

export const signedPart = (part: JsonObject, signature: string | undefined): JsonObject =>
  signature === undefined ? part : { ...part, thoughtSignature: signature };

export function mediaPart(media: Media, usual: string): JsonObject | undefined {
  const mimeType = media.mime ?? usual;
  if ("url" in media) return { fileData: { mimeType, fileUri: media.url } };
  if ("fileId" in media) return undefined;
  const data = "base64" in media ? media.base64 : media.bytes.toString("base64");
  return { inlineData: { mimeType, data } };
}

/** Returns a part of this protocol unchanged. Returns undefined for content of another protocol. */
export const ownPart = (origin: string, raw: Json): JsonObject | undefined =>
  origin === ID ? asObject(raw) : undefined;

/** Flaws of a response that affect its finish reason. */
export interface ResponseFlaws {
  hasRefusal: boolean;
  /** Whether the arguments of a call were not an object. */
  hasInvalidCall: boolean;
}

/**
 * Returns the finish reason. Arguments that were truncated by a limit do not count as a malformed
 * call.
 */
export function formatFinish(
  finish: Pick<Finish, "reason" | "detail">,
  held: ResponseFlaws,
): string {
  if (held.hasInvalidCall && finish.reason !== "length" && finish.reason !== "context")
    return "MALFORMED_FUNCTION_CALL";
  return held.hasRefusal && finish.reason === "stop" ? "SAFETY" : formatFinishReason(finish);
}

/** Returns the usage metadata. Zeros are omitted, as in protobuf. */
export function countsTo(u: Usage): JsonObject {
  const prompt = inputTokens(u);
  const thoughts = Math.min(u.reasoning ?? 0, u.output ?? 0);
  const outputTokens = (u.output ?? 0) + (u.image_out ?? 0) + (u.audio_out ?? 0) - thoughts;
  return {
    ...(prompt > 0 && { promptTokenCount: prompt }),
    ...(u.cache_read && { cachedContentTokenCount: u.cache_read }),
    ...(outputTokens > 0 && { candidatesTokenCount: outputTokens }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + outputTokens + thoughts,
  };
}

/** Encodes log probabilities from the form of chat completions and responses. */
export function formatLogprobs(all: readonly Json[]): JsonObject {
  const one = (raw: Json): JsonObject => ({
    token: asText(asObject(raw)?.["token"]) ?? "",
    logProbability: asObject(raw)?.["logprob"],
  });
  return {
    chosenCandidates: all.map(one),
    topCandidates: all.map((raw) => ({
      candidates: asList(asObject(raw)?.["top_logprobs"]).map(one),
    })),
  };
}

// Encodes citations as grounding metadata: web sources with the range of UTF-8 bytes that each
// supports. Other protocols count code points.

interface Source {
  url: string;
  title: string;
  /** Offset in code points. Undefined if the citation has no position. */
  from: number | undefined;
  to: number | undefined;
}

/**
 * Returns the grounding metadata. Returns undefined if no citation is a web source.
 *
 * @param sentText The text that the citations refer to.
 */
export function grounding(sentText: SentText, citations: readonly Json[]): JsonObject | undefined {
  const sources = citations.flatMap((citation) => sourceOf(citation) ?? []);
  if (sources.length === 0) return undefined;
  const bytes = sentText.bytesAt(sources.flatMap(({ from, to }) => [from ?? 0, to ?? 0]));
  return {
    groundingChunks: sources.map(({ url, title }) => ({ web: { uri: url, title } })),
    groundingSupports: sources.flatMap(({ from, to }, i) => {
      if (from === undefined || to === undefined) return [];
      const [startIndex, endIndex] = [bytes.get(from)!, bytes.get(to)!];
      if (endIndex <= startIndex) return [];
      return [
        {
          segment: { ...(startIndex > 0 && { startIndex }), endIndex },
          groundingChunkIndices: [i],
        },
      ];
    }),
  };
}

/** Reads a citation in the form of OpenAI's protocols or of Anthropic's. */
function sourceOf(citation: Json): Source | undefined {
  const raw = asObject(citation);
  const of = asObject(raw?.["url_citation"]) ?? raw;
  const url = asText(of?.["url"]);
  if (!url) return undefined;
  return {
    url,
    title: asText(of!["title"]) ?? "",
    from: pointOf(of!["start_index"]),
    to: pointOf(of!["end_index"]),
  };
}

const pointOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;

/**
 * Text that was sent, kept for converting offsets. Runs of one-byte characters are only counted,
 * not stored.
 */
export class SentText {
  readonly #parts: { plain: number; text: string }[] = [];

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  add(text: string): void {
    // An empty text must not create a new part, because it could separate the two halves of a
    // character.
    if (text === "") return;
    const plain = Buffer.byteLength(text) === text.length;
    const last = this.#parts.at(-1);
    if (!last || plain !== (last.text === ""))
      this.#parts.push(plain ? { plain: text.length, text: "" } : { plain: 0, text });
    else if (plain) last.plain += text.length;
    else last.text += text;
  }

  /**
   * Returns the number of bytes before each offset. The text is scanned once, however often it is
   * cited.
   */
  bytesAt(places: readonly number[]): ReadonlyMap<number, number> {
    const wanted = [...new Set(places)].toSorted((a, b) => a - b);
    const found = new Map<number, number>();
    let next = 0;
    let point = 0;
    let bytes = 0;
    for (const { plain, text } of this.#parts) {
      for (; next < wanted.length && wanted[next]! < point + plain; next++)
        found.set(wanted[next]!, bytes + wanted[next]! - point);
      point += plain;
      bytes += plain;
      for (const letter of text) {
        while (next < wanted.length && wanted[next]! <= point) found.set(wanted[next++]!, bytes);
        if (next === wanted.length) return found;
        point++;
        bytes += Buffer.byteLength(letter);
      }
    }
    while (next < wanted.length) found.set(wanted[next++]!, bytes);
    return found;
  }
}
