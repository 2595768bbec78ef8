// Adapts an outgoing request from OpenAI's form to the form of this backend, in both modes. Every
// step first checks the body and edits only the parts that must change, so that a request that
// needs no change keeps its bytes.
import { fail } from "../../../model/error.ts";
import type { CallContext, Json, Outgoing, JsonObject } from "../../../plugin/index.ts";
import { adaptReasoning } from "./reasoning-effort.ts";
import { traitsOf, type ChatDialect, type ChatTraits, type ReasoningTraits } from "../dialect.ts";
import { asBoolean, asList, asNumber, asObject, omitUndefined, asText } from "../../json-values.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import { isSealed } from "../../proof-envelope.ts";
import { textIn } from "../server/reasoning.ts";
import { digest } from "../constants.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: ChatDialect): void {
  const traits = traitsOf(dialect, of.model);
  rejectUnsupportedFields(out, traits, of);
  adaptReasoning(out, of, traits);
  renameOutputLimit(out, traits);
  requestUsage(out, of, traits);
  const messages = asList(out.get("messages"));
  rejectBlockedReferences(out, of.stateMode);
  const fit = adaptMessages(messages, traits);
  if (fit !== messages) out.set("messages", fit);
  adaptTools(out, of, traits);
  for (const [field, other] of Object.entries(traits.renameFields ?? {})) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (out.get(other) === undefined) out.set(other, value);
  }
  // In both modes, a field is sent to models that support it. If a model is known not to support
  // it, the field is dropped and the loss is reported by name.
  for (const field of [...(traits.dropFields ?? []), ...(of.info.rejectedFields ?? [])]) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null && value !== false) of.reportLoss(field, "dropped");
  }
}

/**
 * Rejects fields that change the result, because they must not be dropped. `n: 1` is removed,
 * because every backend returns one choice.
 */
function rejectUnsupportedFields(out: Outgoing, traits: ChatTraits, of: CallContext): void {
  for (const field of traits.rejectFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    const idle =
      value === null || value === false || (field === "n" && value === 1) || isEmpty(value);
    if (idle) out.remove(field);
    else
      fail("unsupported", `${of.model} does not support ${field}.`, {
        code: "unsupported_parameter",
        param: field,
      });
  }
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/**
 * Renames the output limit. Both names are never sent together: some backends reject that with an
 * error, and other backends apply the wrong limit.
 */
function renameOutputLimit(out: Outgoing, { maxTokens: known }: ChatTraits): void {
  if (!known) return;
  const other = known === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const tokens = asNumber(out.get("max_completion_tokens")) ?? asNumber(out.get("max_tokens"));
  if (out.get(other) !== undefined) out.remove(other);
  if (tokens !== undefined) out.set(known, tokens);
}

/** Requests usage in every stream, so that every call can be billed. */
function requestUsage(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const options = out.get("stream_options");
  if (!of.stream || traits.streamUsage === "none") {
    if (options !== undefined) out.remove("stream_options");
  } else if (asBoolean(asObject(options)?.["include_usage"]) !== true) {
    out.set("stream_options", { ...asObject(options), include_usage: true });
  }
}

function adaptTools(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const all = asList(out.get("tools"));
  const extra = omitUndefined({
    ...traits.setFields?.always,
    ...(all.length > 0 && traits.setFields?.tools),
    ...(all.length > 0 && of.stream && traits.setFields?.streamedTools),
  });
  for (const [field, value] of Object.entries(extra))
    if (out.get(field) === undefined) out.set(field, value as Json);
  if (all.length === 0) return;
  // Passthrough mode cannot extract a freeform input from a function's arguments.
  if (traits.customTools === false && all.some((tool) => asObject(tool)?.["type"] === "custom"))
    fail("unsupported", `${of.model} does not support freeform tools. Declare functions instead.`, {
      code: "unsupported_tool",
      param: "tools",
    });
  if (traits.strictTools === false) {
    const loose = all.map((tool) => withoutStrict(tool, of));
    if (loose.some((tool, i) => tool !== all[i])) out.set("tools", loose);
  }
  adaptToolChoice(out, of, traits);
}

function withoutStrict(raw: Json, of: CallContext): Json {
  const tool = asObject(raw);
  const fn = asObject(tool?.["function"]);
  if (!tool || fn?.["strict"] === undefined) return raw;
  if (fn["strict"] === true) of.reportLoss("tools.strict", "dropped");
  const { strict: _, ...rest } = fn;
  return { ...tool, function: rest };
}

function adaptToolChoice(out: Outgoing, of: CallContext, { toolChoice }: ChatTraits): void {
  const clientToolChoice = out.get("tool_choice");
  if (clientToolChoice === undefined || toolChoice === undefined || clientToolChoice === "auto")
    return;
  if (toolChoice === "any") {
    if (clientToolChoice === "required") out.set("tool_choice", "any");
    return;
  }
  out.remove("tool_choice");
  if (clientToolChoice === null) return;
  if (clientToolChoice !== "none")
    fail(
      "unsupported",
      `${of.model} does not support a forced tool choice. Use tool_choice: auto.`,
      {
        code: "unsupported_parameter",
        param: "tool_choice",
      },
    );
  out.remove("tools");
  out.remove("parallel_tool_calls");
  of.reportLoss("tools", "approximated", "tools_left_out");
}

/** Limits the output tokens of an outgoing request, whatever limit the client set. */
export function capOutput(out: Outgoing, tokens: number, dialect: ChatDialect): void {
  let bounded = false;
  for (const field of ["max_completion_tokens", "max_tokens"]) {
    const requested = asNumber(out.get(field));
    if (requested === undefined) continue;
    bounded = true;
    if (requested > tokens) out.set(field, tokens);
  }
  if (!bounded) out.set(dialect.maxTokens ?? "max_completion_tokens", tokens);
}

// Adapts messages to a backend. Most backends need no change, and then the messages are not read. A
// message that needs no change is returned as is.

/**
 * Returns the messages in the form that this backend accepts. Returns the same list if nothing
 * changed.
 */
function adaptMessages(messages: readonly Json[], traits: ChatTraits): readonly Json[] {
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
 * Removes envelopes. The gateway creates envelopes for clients, which send them back. An envelope
 * contains another provider's data, which this backend must not receive.
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
 * Replaces call IDs by nine letters and digits. An ID is always converted in the same way: in the
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

/** Moves earlier reasoning to the field that this backend reads. */
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
