// Encodes content of the common form in this protocol. Streams and whole responses share this code,
// so their output is consistent.
import type { ModelResponse } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { isSealed, seal } from "../../proof-envelope.ts";
import { fitName, createNameRestorer } from "../../tool-calls.ts";
import { usageTo } from "../usage.ts";
import { isObject, asText } from "../../json-values.ts";
import { ID, REFUSAL_CATEGORIES, formatFinishReason, type ResponseContents } from "../constants.ts";

/** Returns the message without its content, for `message_start` and whole responses. */
export const message = (to: ResponseContext, usage: Usage): JsonObject => ({
  id: `msg_${to.id}`,
  type: "message",
  role: "assistant",
  model: to.model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
  diagnostics: null,
  usage: usageTo(usage),
});

/** Returns the finish reason, for `message_delta` and whole responses. */
export const formatFinish = (
  finish: ModelResponse["finish"],
  held: ResponseContents,
): JsonObject => {
  const stop = formatFinishReason(finish, held);
  const { detail } = finish;
  const category = detail !== undefined && REFUSAL_CATEGORIES.has(detail) ? detail : null;
  return {
    stop_reason: stop,
    stop_sequence: stop === "stop_sequence" ? (finish.sequence ?? null) : null,
    stop_details:
      stop === "refusal"
        ? {
            type: "refusal",
            category,
            explanation: category === null ? (detail ?? null) : null,
          }
        : null,
    container: null,
  };
};

export const textBlock = (text: string, citations: readonly Json[] = []): JsonObject => ({
  type: "text",
  text,
  citations: citations.length > 0 ? citations : null,
});

/**
 * Returns the signature of a thinking block. The proof of another provider is wrapped in an
 * envelope. Unsigned thinking gets an envelope too, because clients drop thinking without a
 * signature.
 */
export const signature = (proof: Opt<Proof>, summary: boolean): string =>
  proof?.origin === ID && proof.kind === "signature" ? proof.data : seal({ proof, summary });

/** Encodes reasoning. Returns undefined if there is neither text nor a proof. */
export function reasoningBlock(
  text: string,
  proof: Opt<Proof>,
  summary: boolean,
): JsonObject | undefined {
  if (text === "") {
    if (!proof) return undefined;
    if (proof.origin === ID && proof.kind === "redacted")
      return { type: "redacted_thinking", data: proof.data };
    if (proof.origin !== ID) return { type: "redacted_thinking", data: seal({ proof, summary }) };
  }
  return { type: "thinking", thinking: text, signature: signature(proof, summary) };
}

/**
 * Returns a block that carries the proof of a call or text. The blocks of calls and texts have no
 * member for a proof. Clients send the carrier block back without reading it.
 */
export const proofCarrierBlock = (proof: Proof, of: "call" | "text"): JsonObject => ({
  type: "redacted_thinking",
  data: seal({ proof, precedingBlock: of }),
});

/** Whether a block contains only a proof envelope. */
export const isCarrier = (block: JsonObject): boolean =>
  block["type"] === "redacted_thinking" && isSealed(asText(block["data"]) ?? "");

/**
 * Removes proofs after the last text of a message. Clients take the last block as the response, and
 * one of them prints nothing if that block is not text. The provider does not need such a proof. A
 * proof that signs a call is kept.
 */
export function withoutTrailingCarriers(content: readonly JsonObject[]): readonly JsonObject[] {
  const end = content.findLastIndex((block) => !isCarrier(block)) + 1;
  return content[end - 1]?.["type"] === "text" ? content.slice(0, end) : content;
}

export const callBlock = (id: string, name: string, input: Json): JsonObject => ({
  type: "tool_use",
  id: callId(id),
  name,
  input,
  caller: { type: "direct" },
});

const callId = (id: string): string => fitName(id, 64);

/**
 * Returns a function that maps a tool name back to the one that the client declared, if another
 * protocol changed it. An undeclared name is made valid.
 */
export function namesOf(to: ResponseContext): (name: string) => string {
  const tools = to.body["tools"];
  const declared = new Set(
    Array.isArray(tools)
      ? tools.flatMap((t) => (isObject(t) ? (asText(t["name"]) ?? []) : []))
      : [],
  );
  const unfitted = createNameRestorer(() => declared);
  return (name) => {
    const own = unfitted(name);
    return declared.has(own) ? own : fitName(own, 128);
  };
}

/** Returns a block of this protocol's own hosted tools unchanged. */
export const ownBlock = (origin: string, raw: Json): JsonObject | undefined =>
  origin === ID && isObject(raw) && asText(raw["type"]) !== undefined ? raw : undefined;
