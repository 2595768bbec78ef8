// Adapts messages to a backend. Most backends need no change, and then the messages are not read. A
// message that needs no change is returned as is.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Json, JsonObject } from "../../../plugin/index.ts";
import type { ChatTraits, ReasoningTraits } from "../dialect.ts";
import { isSealed } from "../../proof-envelope.ts";
import { textIn } from "../server/reasoning.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { digest } from "../constants.ts";

/**
 * Returns the messages in the form that this backend accepts. Returns the same list if nothing
 * changed.
 */
export function adaptMessages(messages: readonly Json[], traits: ChatTraits): readonly Json[] {
  let changed = false;
  const all = messages.map((raw) => {
    const message = asObject(raw);
    if (!message) return raw;
    const now = adaptMessage(message, traits);
    changed ||= now !== message;
    return now;
  });
  return changed ? all : messages;
}

function adaptMessage(message: JsonObject, traits: ChatTraits): JsonObject {
  let now = message["role"] === "assistant" ? withoutEnvelopes(message) : message;
  if (traits.developerRole === false && now["role"] === "developer")
    now = { ...now, role: "system" };
  if (traits.contentParts === false) now = withTextContent(now);
  if (traits.toolIds === "alnum9") now = withShortIds(now);
  if (traits.reasoning?.echo !== undefined && now["role"] === "assistant")
    now = withReasoningEcho(now, traits.reasoning);
  return now;
}

/**
 * Removes envelopes. The gateway creates them for clients to keep. They contain another provider's
 * data, which this backend must not receive.
 */
function withoutEnvelopes(message: JsonObject): JsonObject {
  let now = message;
  const details = asList(message["reasoning_details"]);
  const native = details.filter((d) => !isSealed(asText(asObject(d)?.["data"]) ?? ""));
  if (native.length < details.length) {
    const { reasoning_details: _, ...rest } = message;
    now = native.length === 0 ? rest : { ...rest, reasoning_details: native };
  }
  const calls = asList(message["tool_calls"]);
  const bare = calls.map((raw) => {
    const call = asObject(raw);
    const signature = asText(
      asObject(asObject(call?.["extra_content"])?.["google"])?.["thought_signature"],
    );
    if (signature === undefined || !isSealed(signature)) return raw;
    const { extra_content: _, ...rest } = call!;
    return rest;
  });
  return bare.some((call, i) => call !== calls[i]) ? { ...now, tool_calls: bare } : now;
}

/** Joins text parts into one string. Messages with other parts are returned unchanged. */
function withTextContent(message: JsonObject): JsonObject {
  const parts = message["content"];
  if (!Array.isArray(parts)) return message;
  const texts = parts.map((p: Json) =>
    asObject(p)?.["type"] === "text" ? asText(asObject(p)?.["text"]) : undefined,
  );
  if (texts.some((t) => t === undefined)) return message;
  return { ...message, content: texts.join(message["role"] === "assistant" ? "" : "\n\n") };
}

const NINE_ALPHANUMERIC = /^[a-zA-Z0-9]{9}$/;
const toNineAlphanumeric = (id: string): string =>
  NINE_ALPHANUMERIC.test(id) ? id : digest(id, 9);

/**
 * Replaces call IDs by nine letters and digits. The same ID always yields the same result: in the
 * call, in its result, and in every later request.
 */
function withShortIds(message: JsonObject): JsonObject {
  const answers = asText(message["tool_call_id"]);
  const calls = asList(message["tool_calls"]);
  if (answers !== undefined && !NINE_ALPHANUMERIC.test(answers))
    return { ...message, tool_call_id: toNineAlphanumeric(answers) };
  if (calls.every((c) => NINE_ALPHANUMERIC.test(asText(asObject(c)?.["id"]) ?? "000000000")))
    return message;
  return {
    ...message,
    tool_calls: calls.map((c) => {
      const call = asObject(c);
      const id = asText(call?.["id"]);
      return call && id !== undefined ? { ...call, id: toNineAlphanumeric(id) } : c;
    }),
  };
}

const FIELDS = ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] as const;

/** Moves earlier reasoning to the one field that this backend reads. */
function withReasoningEcho(
  message: JsonObject,
  { echo, echoRequired }: ReasoningTraits,
): JsonObject {
  const has = FIELDS.filter((f) => message[f] !== undefined && message[f] !== null);
  const needs = echoRequired === true && asList(message["tool_calls"]).length > 0;
  if (has.length === 0 && !needs) return message;
  // Details must be returned complete and in order, with the other reasoning fields of the message.
  if (echo === "reasoning_details" && has.includes("reasoning_details")) return message;
  const plain = spoken(message);
  const field = echo === "reasoning_details" ? "reasoning" : echo;
  if (has.length === 1 && has[0] === field) return message;
  const rest: Record<string, Json> = {};
  for (const key in message)
    if (!(FIELDS as readonly string[]).includes(key)) setOwnProperty(rest, key, message[key]);
  if (echo === "never" || (plain === "" && !needs)) return rest;
  if (echo === "thinking_parts") return withReasoningDetail(rest, plain);
  return { ...rest, [field!]: plain };
}

function spoken(message: JsonObject): string {
  return (
    asText(message["reasoning_content"]) ??
    asText(message["reasoning"]) ??
    (textIn(asList(message["reasoning_details"])) ||
      asList(message["thinking_blocks"])
        .map((b) => asText(asObject(b)?.["thinking"]) ?? "")
        .join(""))
  );
}

function withReasoningDetail(message: JsonObject, plain: string): JsonObject {
  if (plain === "") return message;
  const { content } = message;
  const details: readonly Json[] =
    typeof content === "string"
      ? content === ""
        ? []
        : [{ type: "text", text: content }]
      : asList(content);
  const thought = { type: "thinking", thinking: [{ type: "text", text: plain }] };
  return { ...message, content: [thought, ...details] };
}
