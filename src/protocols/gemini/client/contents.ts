// The conversation as this wire wants it: user and model take turns, and what functions answered stands first in the
// very next turn, in the order of the calls.
import { fail } from "../../../model/error.ts";
import type { Block, ChatRequest, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { failUnsupported, type GeminiEncoding } from "./encoding-context.ts";
import { partsOf } from "./parts.ts";
import { withRequiredSignatures } from "./signatures.ts";
import { asObject, asObjects } from "../../json-values.ts";
import type { ContentSource } from "../server/contents.ts";
import { sourceOf } from "../constants.ts";

interface Content {
  role: "user" | "model";
  parts: JsonObject[];
  /** What its client said of it besides. */
  more?: JsonObject;
}

/** `systemInstruction`; nothing for a model that has none, whose first turn begins with it instead. */
export function systemTo(blocks: readonly Block[], e: GeminiEncoding): JsonObject | undefined {
  const parts = instructions(blocks, e);
  if (parts.length === 0 || !e.traits.systemInstruction) return undefined;
  return { parts };
}

/** A client's note to its own vendor, which for other providers only spoils the prompt cache. */
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
    fail("unsupported", "The last message has nothing in it that a Gemini model can be asked.", {
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

/** There is no such role inside a conversation: it is read as the user's, in a wrapper that models are trained on. */
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

/** Results first, one for each call and in the order of the calls; of two answers to one call the later. */
function toolResults(
  parts: readonly JsonObject[],
  before: Content | undefined,
  e: GeminiEncoding,
): readonly JsonObject[] {
  // A client of this wire may name no id.
  const link = (of: JsonObject): unknown =>
    e.traits.callIds ? (of["id"] ?? of["name"]) : of["name"];
  /** Where each call stands: the first of its name. */
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
