// What a backend wants changed in the messages themselves. Most want nothing, and then the messages are not read; a message that need
// not change is the same message.
import { put } from "../../../lib/member.ts";
import type { Json, JsonObject } from "../../../plugin/index.ts";
import type { ChatTraits, ReasoningTraits } from "../dialect.ts";
import { isSealed } from "../../envelope.ts";
import { textIn } from "../server/reasoning.ts";
import { list, object, text } from "../../json.ts";
import { digest } from "../words.ts";

/** The messages as this backend takes them; the same list when nothing had to change. */
export function messagesFor(messages: readonly Json[], traits: ChatTraits): readonly Json[] {
  let changed = false;
  const all = messages.map((raw) => {
    const message = object(raw);
    if (!message) return raw;
    const now = messageFor(message, traits);
    changed ||= now !== message;
    return now;
  });
  return changed ? all : messages;
}

function messageFor(message: JsonObject, traits: ChatTraits): JsonObject {
  let now = message["role"] === "assistant" ? opened(message) : message;
  if (traits.developerRole === false && now["role"] === "developer")
    now = { ...now, role: "system" };
  if (traits.parts === false) now = stringed(now);
  if (traits.toolIds === "alnum9") now = withIds(now);
  if (traits.reasoning?.echo !== undefined && now["role"] === "assistant")
    now = echoed(now, traits.reasoning);
  return now;
}

/** Envelopes are ours, for clients to keep: what is in them was another provider's, and is not for this one. */
function opened(message: JsonObject): JsonObject {
  let now = message;
  const details = list(message["reasoning_details"]);
  const native = details.filter((d) => !isSealed(text(object(d)?.["data"]) ?? ""));
  if (native.length < details.length) {
    const { reasoning_details: _, ...rest } = message;
    now = native.length === 0 ? rest : { ...rest, reasoning_details: native };
  }
  const calls = list(message["tool_calls"]);
  const bare = calls.map((raw) => {
    const call = object(raw);
    const signature = text(
      object(object(call?.["extra_content"])?.["google"])?.["thought_signature"],
    );
    if (signature === undefined || !isSealed(signature)) return raw;
    const { extra_content: _, ...rest } = call!;
    return rest;
  });
  return bare.some((call, i) => call !== calls[i]) ? { ...now, tool_calls: bare } : now;
}

/** Nothing but texts, as one text. */
function stringed(message: JsonObject): JsonObject {
  const parts = message["content"];
  if (!Array.isArray(parts)) return message;
  const texts = parts.map((p: Json) =>
    object(p)?.["type"] === "text" ? text(object(p)?.["text"]) : undefined,
  );
  if (texts.some((t) => t === undefined)) return message;
  return { ...message, content: texts.join(message["role"] === "assistant" ? "" : "\n\n") };
}

const NINE = /^[a-zA-Z0-9]{9}$/;
const nine = (id: string): string => (NINE.test(id) ? id : digest(id, 9));

/** The same id becomes the same nine letters, in the call and in what answers it, in this request and in every later one. */
function withIds(message: JsonObject): JsonObject {
  const answers = text(message["tool_call_id"]);
  const calls = list(message["tool_calls"]);
  if (answers !== undefined && !NINE.test(answers))
    return { ...message, tool_call_id: nine(answers) };
  if (calls.every((c) => NINE.test(text(object(c)?.["id"]) ?? "000000000"))) return message;
  return {
    ...message,
    tool_calls: calls.map((c) => {
      const call = object(c);
      const id = text(call?.["id"]);
      return call && id !== undefined ? { ...call, id: nine(id) } : c;
    }),
  };
}

const FIELDS = ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] as const;

/** Earlier reasoning, moved to the one place where this backend looks for it. */
function echoed(message: JsonObject, { echo, echoRequired }: ReasoningTraits): JsonObject {
  const has = FIELDS.filter((f) => message[f] !== undefined && message[f] !== null);
  const needs = echoRequired === true && list(message["tool_calls"]).length > 0;
  if (has.length === 0 && !needs) return message;
  // Details go back whole and in order, with whatever stands beside them.
  if (echo === "reasoning_details" && has.includes("reasoning_details")) return message;
  const plain = spoken(message);
  const field = echo === "reasoning_details" ? "reasoning" : echo;
  if (has.length === 1 && has[0] === field) return message;
  const rest: Record<string, Json> = {};
  for (const key in message)
    if (!(FIELDS as readonly string[]).includes(key)) put(rest, key, message[key]);
  if (echo === "never" || (plain === "" && !needs)) return rest;
  if (echo === "thinking_parts") return thoughtful(rest, plain);
  return { ...rest, [field!]: plain };
}

function spoken(message: JsonObject): string {
  return (
    text(message["reasoning_content"]) ??
    text(message["reasoning"]) ??
    (textIn(list(message["reasoning_details"])) ||
      list(message["thinking_blocks"])
        .map((b) => text(object(b)?.["thinking"]) ?? "")
        .join(""))
  );
}

function thoughtful(message: JsonObject, plain: string): JsonObject {
  if (plain === "") return message;
  const { content } = message;
  const said: readonly Json[] =
    typeof content === "string"
      ? content === ""
        ? []
        : [{ type: "text", text: content }]
      : list(content);
  const thought = { type: "thinking", thinking: [{ type: "text", text: plain }] };
  return { ...message, content: [thought, ...said] };
}
