// How canonical content looks on this wire: what the stream and the whole answer share, so that they cannot disagree.
import type { ModelResponse } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { isSealed, seal } from "../../proof-envelope.ts";
import { fitName, createNameRestorer } from "../../tool-names.ts";
import { usageTo } from "../usage.ts";
import { isObject, asText } from "../../json-values.ts";
import { ID, REFUSAL_CATEGORIES, formatFinishReason, type ResponseContents } from "../constants.ts";

/** The message without its content: as `message_start` has it, and around a whole answer. */
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

/** Why it ended: as `message_delta` has it, and in a whole answer. */
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

/** Where the upstream's own signature stands, another's stands in an envelope. Unsigned thoughts get one too, or clients drop them. */
export const signature = (proof: Opt<Proof>, summary: boolean): string =>
  proof?.origin === ID && proof.kind === "signature" ? proof.data : seal({ proof, summary });

/** Reasoning as it goes out; nothing when there is neither a word nor a proof. */
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

/** What a call or a text was signed with has no place in its own block: it follows in one that clients echo unread. */
export const proofCarrierBlock = (proof: Proof, of: "call" | "text"): JsonObject => ({
  type: "redacted_thinking",
  data: seal({ proof, precedingBlock: of }),
});

/** A block that is nothing but an envelope. */
export const isCarrier = (block: JsonObject): boolean =>
  block["type"] === "redacted_thinking" && isSealed(asText(block["data"]) ?? "");

/**
 * Clients take the last block for the answer: one of them prints nothing when words are not it. So a proof after the
 * last words of a message is left out. It is one that its maker can do without; what signs a call stays.
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

/** A name as this client declared it, whatever another wire made of it on the way; one that was not declared is made legal. */
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

/** This wire's own blocks that only hosted tools write come back as they were. */
export const ownBlock = (origin: string, raw: Json): JsonObject | undefined =>
  origin === ID && isObject(raw) && asText(raw["type"]) !== undefined ? raw : undefined;
