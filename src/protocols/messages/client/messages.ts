// Encodes the conversation in the form that this protocol requires. Roles alternate, and tool
// results come first in the turn after the calls.
import { fail } from "../../../model/error.ts";
import type { Block, ChatRequest, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { MessageTurns } from "../server/request.ts";
import { blocksTo, failUnsupported, type MessagesEncoding } from "./blocks.ts";
import { sourceOf } from "../constants.ts";

interface Message {
  role: string;
  content: JsonObject[];
  /** The original message, if it has members other than role and content. */
  raw?: JsonObject;
}

export function systemTo(blocks: readonly Block[], e: MessagesEncoding): Json | undefined {
  const out = wordsOnly(blocks, "system", e);
  if (out.length === 0) return undefined;
  const [first] = out;
  return out.length === 1 && Object.keys(first!).length === 2 ? first!["text"] : out;
}

function wordsOnly(blocks: readonly Block[], path: string, e: MessagesEncoding): JsonObject[] {
  for (const block of blocks)
    if (block.type !== "text" && block.type !== "opaque")
      failUnsupported(`A system message with ${block.type}`, path);
  return blocksTo(blocks, "user", path, e);
}

export function messagesTo(r: ChatRequest, e: MessagesEncoding): Json[] {
  const messages: Message[] = [];
  let open: Message | undefined;
  let empty = false;
  /** Index of the first turn that no whole message has covered yet. */
  let next = 0;
  const say = (role: string, content: JsonObject[]): void => {
    if (content.length === 0) return;
    if (open?.role === role) for (const block of content) open.content.push(block);
    else messages.push((open = { role, content: [...content] }));
  };
  for (const [i, turn] of r.turns.entries()) {
    const path = `messages.${i}`;
    if (i < next) continue;
    const whole = wholeMessage(r.turns, i);
    if (whole) {
      messages.push({ role: "", content: [], raw: whole.message });
      open = undefined;
      empty = false;
      next = i + whole.turns.length;
      continue;
    }
    if (turn.name !== undefined) e.of.reportLoss("messages.name", "dropped");
    if (turn.role === "system" || turn.role === "developer") {
      system(turn, path, say, e);
      if (e.settings.systemMessages) open = undefined;
      continue;
    }
    const role = turn.role === "assistant" ? "assistant" : "user";
    const content = blocksTo(turn.blocks, role, path, e);
    empty = content.length === 0 && role === "user";
    say(role, content);
  }
  if (messages.length === 0 || empty)
    fail(
      "unsupported",
      "The last message has no content that can be sent to a messages endpoint.",
      {
        param: "messages",
        code: "empty_message",
      },
    );
  return messages.map((message) => message.raw ?? orderToolResults(message));
}

/** Returns the original message if it has unknown fields and its turns are unchanged. */
function wholeMessage(turns: readonly Turn[], at: number): MessageTurns | undefined {
  const whole = sourceOf<MessageTurns>(turns[at]!);
  return whole?.turns.every((turn, i) => turns[at + i] === turn) ? whole : undefined;
}

/**
 * Encodes a system turn inside the conversation. A model that does not support the role there
 * receives a user turn, in a wrapper that models are trained on.
 */
function system(
  turn: Turn,
  path: string,
  say: (role: string, content: JsonObject[]) => void,
  e: MessagesEncoding,
): void {
  const content = wordsOnly(turn.blocks, path, e);
  if (e.settings.systemMessages) return say("system", content);
  if (content.length > 0) e.of.reportLoss("messages.role", "approximated", "system_moved");
  say(
    "user",
    content.map((block) =>
      typeof block["text"] === "string"
        ? { ...block, text: `<system-reminder>\n${block["text"]}\n</system-reminder>` }
        : block,
    ),
  );
}

/**
 * Puts tool results first and keeps the last one for each call. This protocol rejects two results
 * for one call.
 */
function orderToolResults({ role, content }: Message): JsonObject {
  if (role !== "user") return { role, content };
  const results = new Map<unknown, JsonObject>();
  const others: JsonObject[] = [];
  for (const block of content)
    if (block["type"] === "tool_result") results.set(block["tool_use_id"], block);
    else others.push(block);
  return { role, content: [...results.values(), ...others] };
}
