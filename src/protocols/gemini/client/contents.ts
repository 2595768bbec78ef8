// Encodes the conversation. In this protocol, user and model alternate. Function results come first
// in the next turn, in the order of the calls.
import { fail } from "../../../model/error.ts";
import type { Block, ChatRequest, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { failUnsupported, type GeminiEncoding } from "./encoding-context.ts";
import { partsOf, withRequiredSignatures } from "./parts.ts";
import { asObject, asObjects } from "../../json-values.ts";
import type { ContentSource } from "../server/contents.ts";
import { sourceOf } from "../constants.ts";

interface Content {
  role: "user" | "model";
  parts: JsonObject[];
  /** Other fields that the client set on this content. */
  more?: JsonObject;
}

/**
 * Returns `systemInstruction`. Returns undefined for a model that does not support system
 * instructions: its first turn contains them.
 */
export function systemTo(blocks: readonly Block[], e: GeminiEncoding): JsonObject | undefined {
  const parts = instructions(blocks, e);
  if (parts.length === 0 || !e.traits.systemInstruction) return undefined;
  return { parts };
}

/**
 * Matches telemetry that a client sends to its own vendor. For other providers, it only invalidates
 * the prompt cache.
 */
const BILLING_HEADER = /^x-anthropic-billing-header:/;

function instructions(blocks: readonly Block[], e: GeminiEncoding): JsonObject[] {
  for (const block of blocks)
    if (block.type !== "text" && block.type !== "opaque")
      failUnsupported(`A system instruction with ${block.type}`, "system");
  return blocks.flatMap((block) =>
    block.type === "text" && BILLING_HEADER.test(block.text)
      ? []
      : partsOf(block, "user", "system", e),
  );
}

export function contentsTo(r: ChatRequest, e: GeminiEncoding): Json[] {
  const contents: Content[] = [];
  let empty = false;
  const say = (role: Content["role"], parts: readonly JsonObject[], more?: JsonObject): void => {
    const last = contents.at(-1);
    if (parts.length === 0 && !more) return;
    if (more) contents.push({ role, parts: [...parts], more });
    else if (last?.role === role) for (const part of parts) last.parts.push(part);
    else contents.push({ role, parts: [...parts] });
  };
  if (!e.traits.systemInstruction) {
    const parts = instructions(r.instructions, e);
    if (parts.length > 0) e.of.reportLoss("system", "approximated", "system_as_user");
    say("user", parts);
  }
  for (const [i, turn] of r.turns.entries()) {
    const at = `messages.${i}`;
    if (turn.name !== undefined) e.of.reportLoss("messages.name", "dropped");
    if (turn.role === "system" || turn.role === "developer") {
      say("user", systemAsUserParts(turn, at, e));
      continue;
    }
    const role = turn.role === "assistant" ? "model" : "user";
    const parts = turn.blocks.flatMap((block) => partsOf(block, role, at, e));
    empty = parts.length === 0 && role === "user";
    say(role, parts, sourceOf<ContentSource>(turn)?.more);
  }
  if (contents.length === 0 || empty)
    fail("unsupported", "The last message has no content that can be sent to a Gemini model.", {
      param: "messages",
      code: "empty_message",
    });
  if (contents[0]!.role === "model") {
    e.of.reportLoss("messages", "approximated", "user_turn_inserted");
    contents.unshift({ role: "user", parts: [{ text: " " }] });
  }
  if (contents.at(-1)!.role === "model")
    e.of.reportLoss("messages", "approximated", "prefill_ignored");
  return contents.map(({ role, parts, more }, i) => ({
    ...more,
    role,
    parts:
      role === "model" ? withRequiredSignatures(parts, e) : toolResults(parts, contents[i - 1], e),
  }));
}

/**
 * Returns a system message inside a conversation as user parts. This protocol has no such role, so
 * the text is wrapped in a tag that models are trained on.
 */
function systemAsUserParts(turn: Turn, at: string, e: GeminiEncoding): JsonObject[] {
  const parts: JsonObject[] = [];
  for (const block of turn.blocks) {
    if (block.type !== "text" && block.type !== "opaque")
      failUnsupported(`A system message with ${block.type}`, at);
    for (const part of partsOf(block, "user", at, e))
      parts.push({
        ...part,
        text: `<system-reminder>\n${String(part["text"])}\n</system-reminder>`,
      });
  }
  if (parts.length > 0) e.of.reportLoss("messages.role", "approximated", "system_moved");
  return parts;
}

/**
 * Returns the parts in a new order: the results of the calls come first, one per call and in the
 * order of the calls. If a call has two results, the later result is used.
 */
function toolResults(
  parts: readonly JsonObject[],
  before: Content | undefined,
  e: GeminiEncoding,
): readonly JsonObject[] {
  // A client of this protocol may omit the ID.
  const link = (of: JsonObject): unknown =>
    e.traits.callIds ? (of["id"] ?? of["name"]) : of["name"];
  /** Position of each call. For calls of the same name, the position of the first. */
  const places = new Map<unknown, number>();
  for (const call of asObjects((before?.parts ?? []).map((part) => part["functionCall"])))
    if (!places.has(link(call))) places.set(link(call), places.size);
  const answers = new Map<unknown, { part: JsonObject; place: number }>();
  const others: JsonObject[] = [];
  for (const [i, part] of parts.entries()) {
    const response = asObject(part["functionResponse"]);
    if (!response) {
      others.push(part);
      continue;
    }
    const place = places.get(link(response)) ?? Infinity;
    answers.set(e.traits.callIds ? (response["id"] ?? i) : i, { part, place });
  }
  const ordered = [...answers.values()].toSorted(({ place: a }, { place: b }) =>
    a === b ? 0 : a - b,
  );
  return [...ordered.map(({ part }) => part), ...others];
}
