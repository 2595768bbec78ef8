import type { Block, ChatRequest, Output, Reasoning, Tool, Turn } from "../../../model/request.ts";
import type { Body, Json, JsonObject, Opt, Field } from "../../../model/values.ts";
import type { ConversationKey } from "../../../plugin/references.ts";
import {
  isObject,
  asNumber,
  hasOnlyKeys,
  omitUndefinedOrNothing,
  asText,
  asList,
  parseObject,
} from "../../json-values.ts";
import {
  rememberSource,
  ID,
  KNOWN_TOP_LEVEL_FIELDS,
  failMalformed,
  PROTOCOL_FIELDS,
} from "../constants.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import { blocksOf } from "./blocks.ts";
import { findUnknownFields, unknownTopLevelFields } from "../../unknown-fields.ts";

/**
 * Decodes a client's request. Fields that only this protocol has are kept in `ext.messages`, and
 * unknown fields in `rest`.
 */
export function decodeRequest(body: Body): ChatRequest {
  const choice = toolChoiceOf(body["tool_choice"]);
  const thinking = thinkingOf(body["thinking"], body["output_config"]);
  const output = outputOf(body);
  const metadata = isObject(body["metadata"]) ? body["metadata"] : {};
  const { user_id: user, ...more } = metadata;
  const own: Record<string, Json | undefined> = {
    ...thinking.own,
    ...choice.own,
    output_config: output.own,
    metadata: omitUndefinedOrNothing(more),
    ...protocolToolFields(body["tools"]),
    ...findUnknownFields(body as JsonObject, KNOWN_FIELDS),
  };
  for (const field of PROTOCOL_FIELDS) own[field] = body[field] as Json | undefined;
  return {
    operation: "chat",
    model: asText(body["model"]) ?? "",
    stream: body["stream"] === true,
    user: asText(user),
    instructions: blocksOf(body["system"], "system"),
    turns: turnsOf(body["messages"]),
    tools: toolsOf(body["tools"]),
    toolChoice: choice.choice,
    parallelToolCalls: choice.parallel,
    output: output.output,
    sampling: {
      temperature: asNumber(body["temperature"]),
      topP: asNumber(body["top_p"]),
      topK: asNumber(body["top_k"]),
    },
    reasoning: thinking.reasoning,
    cache: cacheOf(body["cache_control"]),
    tier: body["service_tier"] === "standard_only" ? "default" : asText(body["service_tier"]),
    state: {},
    rest: unknownTopLevelFields(body, (field) => KNOWN_TOP_LEVEL_FIELDS.has(field)),
    // Always present, even if empty. It shows that the request was made in this protocol.
    ext: { [ID]: omitUndefinedOrNothing(own) ?? {} },
  };
}

/** A message with members other than role and content, and the turns that it was decoded into. */
export interface MessageTurns {
  message: JsonObject;
  turns: readonly Turn[];
}

/**
 * Decodes messages into turns. Consecutive messages of one role are one turn, because this protocol
 * treats them so. Every tool result is a separate turn, as in protocols that have a role for it. A
 * message with additional members is not merged with others.
 */
function turnsOf(messages: unknown): Turn[] {
  if (!Array.isArray(messages)) return failMalformed("messages must be a list.", "messages");
  const turns: { role: Turn["role"]; blocks: Block[] }[] = [];
  /** The turn that the next message may continue. */
  let open: { role: Turn["role"]; blocks: Block[] } | undefined;
  const say = (role: Turn["role"], block: Block): void => {
    if (open?.role === role && role !== "tool") open.blocks.push(block);
    else turns.push((open = { role, blocks: [block] }));
  };
  for (const [i, message] of (messages as readonly Json[]).entries()) {
    const path = `messages.${i}`;
    if (!isObject(message)) return failMalformed(`${path} must be a message.`, path);
    const { role, content } = message;
    if (role !== "user" && role !== "assistant" && role !== "system")
      return failMalformed(`${path}.role must be user, assistant or system.`, `${path}.role`);
    const apart = !hasOnlyKeys(message, ["role", "content"]);
    const first = turns.length;
    const blocks = blocksOf(content, `${path}.content`);
    if (apart || role === "system") open = undefined;
    if (role === "system" || (apart && blocks.length === 0)) turns.push({ role, blocks });
    else for (const block of blocks) say(block.type === "result" ? "tool" : role, block);
    if (!apart) continue;
    open = undefined;
    rememberSource(turns[first]!, { message, turns: turns.slice(first) } satisfies MessageTurns);
  }
  return turns;
}

function toolsOf(tools: unknown): Tool[] {
  if (!Array.isArray(tools)) return [];
  return (tools as readonly Json[]).map((raw, i) => {
    if (!isObject(raw)) return failMalformed(`tools.${i} must be a tool.`, `tools.${i}`);
    const { type, name, description, input_schema, strict, cache_control, ...more } = raw;
    const cache = cache_control ?? undefined;
    if (typeof type === "string" && type !== "custom") {
      // All versions of web search get one name, because other protocols have this tool too.
      const known = type.startsWith("web_search_") ? "web_search" : (asText(name) ?? type);
      return { type: "hosted", name: known, origin: ID, raw };
    }
    return {
      type: "function",
      name: asText(name) ?? failMalformed(`Missing tools.${i}.name.`, `tools.${i}.name`),
      description: asText(description),
      schema: isObject(input_schema) ? input_schema : undefined,
      strict: strict === true ? true : undefined,
      ...(cache !== undefined && { cache }),
      ...(omitUndefinedOrNothing(more) && { origin: ID, raw: more }),
    };
  });
}

/**
 * Returns the members of function tools that only this protocol has, so that other codecs can
 * report them. Default values are omitted.
 */
function protocolToolFields(tools: unknown): Record<string, Json> {
  const named: Record<string, Json> = {};
  if (!Array.isArray(tools)) return named;
  for (const tool of tools as readonly Json[]) {
    if (!isObject(tool) || (tool["type"] ?? "custom") !== "custom") continue;
    for (const key in tool)
      if (!COMMON_FIELDS.has(key) && !isUsual(key, tool[key])) named[`tools.${key}`] = tool[key]!;
  }
  return named;
}

const COMMON_FIELDS: ReadonlySet<string> = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "strict",
  "cache_control",
]);

const isUsual = (key: string, value: Opt<Json>): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (Array.isArray(value) &&
    value.every((one: Json) => key === "allowed_callers" && one === "direct"));

interface ToolChoice {
  choice?: ChatRequest["toolChoice"];
  parallel?: boolean | undefined;
  own?: { tool_choice: Json };
}

function toolChoiceOf(raw: unknown): ToolChoice {
  if (!isObject(raw)) return {};
  const off = raw["disable_parallel_tool_use"];
  const parallel = typeof off === "boolean" ? !off : undefined;
  switch (raw["type"]) {
    case "auto":
      return { choice: "auto", parallel };
    case "any":
      return { choice: "required", parallel };
    case "none":
      return { choice: "none", parallel };
    case "tool":
      return { choice: { names: [asText(raw["name"]) ?? ""], must: true }, parallel };
    default:
      return { own: { tool_choice: raw }, parallel };
  }
}

/**
 * Decodes thinking. `auto` with a display setting counts as requested thinking, and `auto` alone
 * does not. Only this protocol has an effort without thinking. Other protocols treat an effort as a
 * request for thinking.
 */
function thinkingOf(
  thinking: unknown,
  config: unknown,
): { reasoning: Reasoning; own?: Record<string, Json> } {
  const effort = isObject(config) ? asText(config["effort"]) : undefined;
  const effortField = effort === undefined ? {} : { effort };
  if (!isObject(thinking))
    return effort === undefined
      ? { reasoning: { mode: "auto" } }
      : { reasoning: { mode: "effort", effort }, own: { effort_without_thinking: true } };
  const { type, budget_tokens: budget, display } = thinking;
  const show = showOf(display);
  const own: Record<string, Json> = {};
  if (typeof display === "string" && show === undefined) own["thinking_display"] = display;
  const shown = show === undefined ? {} : { show };
  switch (type) {
    case "disabled":
      return { reasoning: { mode: "off", ...effortField, ...shown }, own };
    case "enabled":
      return {
        reasoning: { mode: "budget", budget: asNumber(budget), ...effortField, ...shown },
        own,
      };
    default:
      if (type === "between_tools") own["between_tools"] = true;
      return effort === undefined
        ? { reasoning: { mode: "auto", show: show ?? "full" }, own }
        : { reasoning: { mode: "effort", effort, ...shown }, own };
  }
}

const showOf = (display: unknown): Reasoning["show"] =>
  display === "summarized" ? "summary" : display === "omitted" ? "none" : undefined;

function outputOf(body: Body): { output: Output; own: Json | undefined } {
  const config = isObject(body["output_config"]) ? body["output_config"] : {};
  const { effort: _effort, format: inConfig, ...more } = config;
  const format = inConfig ?? body["output_format"];
  const schema =
    isObject(format) && format["type"] === "json_schema" ? format["schema"] : undefined;
  const stop = body["stop_sequences"];
  const unknown = isObject(format) && !isObject(schema) ? { format } : {};
  return {
    output: {
      maxTokens: asNumber(body["max_tokens"]),
      stop: Array.isArray(stop) ? (stop as readonly string[]) : undefined,
      format: isObject(schema) ? { type: "schema", schema } : undefined,
    },
    own: omitUndefinedOrNothing({ ...more, ...unknown }),
  };
}

/** A top-level cache mark requests caching wherever it is possible. */
function cacheOf(cache: unknown): ChatRequest["cache"] {
  if (!isObject(cache)) return undefined;
  return { auto: true, retention: asText(cache["ttl"]) };
}

/**
 * Claude Code includes its session in the user ID, either as `_session_` and an ID, or as JSON
 * text.
 */
const SESSION = /_session_([\w-]{8,64})$/;

/**
 * Returns the conversation key: the system prompt, the tools, and the first message, which is the
 * user's.
 */
export function conversationKey(body: Body): ConversationKey {
  const [first] = asList(body["messages"]);
  return {
    id: sessionOf(body["metadata"]),
    prefix: [
      blocks(body["system"]),
      body["tools"],
      isObject(first) ? blocks(first["content"]) : undefined,
    ],
  };
}

/**
 * Treats a string as one text block, because clients change it to a block when they add a cache
 * mark.
 */
const blocks = (content: Opt<Field>): Opt<Field> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function sessionOf(metadata: unknown): string | undefined {
  const user = isObject(metadata) ? asText(metadata["user_id"]) : undefined;
  if (user === undefined || user.length > 1_024) return undefined;
  if (!user.startsWith("{")) return SESSION.exec(user)?.[1];
  return asText(parseObject(user)?.["session_id"]);
}
