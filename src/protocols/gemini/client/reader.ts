import { fail } from "../../../model/error.ts";
import type { ModelEvent, OpenBlock } from "../../../model/event.ts";
import type { Media } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { findErrorBody } from "./error-body.ts";
import { CitationIndex, type Citation } from "./grounding.ts";
import { parseLogprobs } from "./logprobs.ts";
import { ReportedCounts } from "./usage-counts.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { digest, parseFinishReason, ID } from "../constants.ts";

/**
 * Where a signature stood: on a call or a picture, on all the words of its block, on the last of them or on a part without
 * any after them, or where there were none.
 */
export type SignaturePlace = "part" | "words" | "after" | "empty";

export interface GeminiReaderOptions {
  /** How the work was ranked. */
  tier: string | undefined;
  /** Pictures are what was asked for. */
  isImageRequest: boolean;
}

interface Open {
  index: number;
  kind: "text" | "reasoning";
  citations: CitationIndex;
  signature: { data: string; at: SignaturePlace } | undefined;
}

/**
 * An answer, read chunk by chunk; a whole answer is a stream of one chunk. This wire has no blocks, only parts: words of
 * one channel that follow each other are one block, signed or not, because clients take the last block for the answer.
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
      fail("upstream", "A piece of the provider's answer is not a JSON object.", {
        code: "bad_stream",
      });
    const candidates = asList(chunk["candidates"]);
    const blocked = asText(asObject(chunk["promptFeedback"])?.["blockReason"]);
    if (blocked && candidates.length === 0 && !this.#content) failBlockedPrompt(blocked, chunk);
    this.#start(chunk);
    // Several candidates are never asked for here.
    const first = candidates.map(asObject).find((c) => (c?.["index"] ?? 0) === 0);
    if (first) this.#candidate(first);
    this.#count(this.#counts.add(chunk, this.#end !== undefined));
  }

  /** The bytes are over. An answer has ended when it named its end; only the last name counts. */
  end(): void {
    if (this.#finished) return;
    const end =
      this.#end ??
      fail("upstream", "The provider's answer ended before it was finished.", {
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
    // What the provider ran by itself, and whatever is newer than us, goes back as it came.
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
      // Nothing was said, but it was signed: that must come back as a part of its own.
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
    // More words, and it no longer stands on all of them.
    else if (open.signature) open.signature.at = "after";
  }

  #call(call: JsonObject, signature: string | undefined): void {
    const name =
      asText(call["name"]) ||
      fail("upstream", "The provider sent a tool call without a name.", { code: "bad_stream" });
    const own = asText(call["id"]) || undefined;
    // Some repeat themselves.
    if (own !== undefined && this.#calls.has(own)) return;
    const args = JSON.stringify(asObject(call["args"]) ?? {});
    // A call without an id gets one that the same answer would get again.
    const seed = this.#id || `${name}${args}`;
    const id = own ?? `call_${digest(`${seed}:${this.#calls.size}`, 24)}`;
    this.#calls.add(id);
    this.#alone({ type: "call", id, name, tool: "function" }, signature, "part", (index) =>
      this.#emit({ type: "delta", index, text: args }),
    );
  }

  #media(part: JsonObject, inline: JsonObject, signature: string | undefined): void {
    // Drafts that a model makes while it thinks are no part of the answer.
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

  /** A block that is one part. */
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
    // First, so that a call's name goes out with it: most clients look for it there and nowhere else.
    if (signature && at) this.#prove(index, signature, at);
    inside?.(index);
    this.#emit({ type: "close", index });
  }

  #prove(index: number, data: string, kind: SignaturePlace): void {
    const model = this.#model ?? this.#of.model;
    this.#emit({ type: "proof", index, proof: { origin: ID, kind, data, model } });
  }

  /** What is cited after its text was left has no block to stand on. */
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

/** More than a signature and marks: something that this codec does not read. */
const hasUnreadContent = (part: JsonObject): boolean => {
  for (const key in part) if (key !== "thoughtSignature" && key !== "thought") return true;
  return false;
};

const keyOf = (cited: Citation): string => `${cited.start_index}:${cited.end_index}:${cited.url}`;

/** A prompt that was blocked is answered with 200 and nothing. */
function failBlockedPrompt(reason: string, chunk: JsonObject): never {
  const message = asText(asObject(chunk["promptFeedback"])?.["blockReasonMessage"]);
  return fail("content_policy", message || `The provider refused the prompt: ${reason}.`, {
    code: "content_policy_violation",
    details: { reason },
  });
}
