// Server half: decodes a body into a request without losing data. Fields that only this protocol
// has are stored in `ext` under the protocol's name. Fields that no codec handles are stored in
// `rest`. Unchanged values keep a reference to their source.
import type { Body } from "../../../model/values.ts";
import type { ChatRequest, Json, JsonObject, Opt, Reasoning, Tool } from "../../../plugin/index.ts";
import type { ConversationKey } from "../../../plugin/references.ts";
import { parseResponseFormat, parsePromptCache } from "../../chat-parameters.ts";
import {
  asBoolean,
  asList,
  asNumber,
  asObject,
  omitUndefined,
  asText,
  isObject,
} from "../../json-values.ts";
import { isMultiplierField } from "../../requested-amounts.ts";
import { findUnknownFields, unknownTopLevelFields } from "../../unknown-fields.ts";
import { rememberSource, ID, splitNames } from "../constants.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import { failMalformed } from "./content.ts";
import { conversation } from "./turns.ts";

/** Fields that the common form can represent. */
const COMMON_FIELDS = splitNames(
  "model messages stream max_tokens max_completion_tokens stop temperature top_p top_k n presence_penalty",
  "frequency_penalty logit_bias logprobs top_logprobs seed response_format verbosity modalities tools tool_choice",
  "parallel_tool_calls functions function_call metadata store service_tier prompt_cache_key prompt_cache_retention",
  "safety_identifier user web_search_options stream_options",
);

/** Fields that control reasoning. Only the first two are in OpenAI's documentation. */
const REASONING_FIELDS = [
  "thinking",
  "reasoning_effort",
  "reasoning",
  "enable_thinking",
  "thinking_budget",
] as const;

/** Fields that only this protocol has. */
const PROTOCOL_FIELDS = [
  "audio",
  "prediction",
  "moderation",
  "prompt_cache_options",
  "include_reasoning",
] as const;

const KNOWN: ReadonlySet<string> = new Set([
  ...COMMON_FIELDS,
  ...REASONING_FIELDS,
  ...PROTOCOL_FIELDS,
]);

/** Whether this protocol has a field, in any dialect. */
export const knowsField = (field: string): boolean => KNOWN.has(field) || isMultiplierField(field);

export function decodeRequest(body: Body): ChatRequest {
  const fields = body as JsonObject;
  const { instructions, turns } = conversation(asList(fields["messages"]));
  const { choice, kept } = choiceOf(fields["tool_choice"] ?? fields["function_call"]);
  const format = parseResponseFormat(fields["response_format"], schemaIn);
  const ext: Record<string, Json> = { ...findUnknownFields(fields, KNOWN_FIELDS) };
  for (const field of PROTOCOL_FIELDS) if (fields[field] != null) ext[field] = fields[field];
  if (kept !== undefined) ext["tool_choice"] = kept;
  if (fields["response_format"] != null && !format)
    ext["response_format"] = fields["response_format"];
  const identifier = asText(fields["safety_identifier"]);
  const user = asText(fields["user"]);
  if (identifier !== undefined) ext["safety_identifier"] = identifier;
  if (fields["top_k"] != null) ext["top_k"] = fields["top_k"];
  const legacy = asList(fields["tools"]).length === 0 && asList(fields["functions"]).length > 0;
  return omitUndefined({
    operation: "chat" as const,
    model: asText(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    user: user ?? identifier,
    instructions,
    turns,
    tools: toolsOf(fields),
    toolChoice: choice,
    // The legacy form allows only one call per response.
    parallelToolCalls: legacy ? false : asBoolean(fields["parallel_tool_calls"]),
    output: omitUndefined({
      maxTokens: asNumber(fields["max_completion_tokens"]) ?? asNumber(fields["max_tokens"]),
      stop: stopOf(fields["stop"]),
      verbosity: asText(fields["verbosity"]),
      modalities: modalitiesOf(fields["modalities"]),
      format,
    }),
    sampling: omitUndefined({
      temperature: asNumber(fields["temperature"]),
      topP: asNumber(fields["top_p"]),
      topK: asNumber(fields["top_k"]),
      presence: asNumber(fields["presence_penalty"]),
      frequency: asNumber(fields["frequency_penalty"]),
      seed: asNumber(fields["seed"]),
      n: asNumber(fields["n"]),
      logprobs: fields["logprobs"] === true ? (asNumber(fields["top_logprobs"]) ?? 0) : undefined,
      logitBias: asObject(fields["logit_bias"]),
    }),
    reasoning: reasoningOf(fields),
    cache: parsePromptCache(fields),
    tier: asText(fields["service_tier"]),
    metadata: asObject(fields["metadata"]),
    state: omitUndefined({ store: asBoolean(fields["store"]) }),
    rest: unknownTopLevelFields(fields, (field) => KNOWN.has(field)),
    // Always set, even if empty, because it marks the protocol of the request.
    ext: { [ID]: ext },
  });
}

function stopOf(stop: Opt<Json>): readonly string[] | undefined {
  const all = typeof stop === "string" ? [stop] : asList(stop).flatMap((s) => asText(s) ?? []);
  const some = all.filter((s) => s !== "");
  return some.length > 0 ? some : undefined;
}

function modalitiesOf(modalities: Opt<Json>): readonly string[] | undefined {
  const all = asList(modalities).flatMap((m) => asText(m) ?? []);
  return all.length > 0 ? all : undefined;
}

/** Returns the object that contains the schema. */
const schemaIn = (format: JsonObject): JsonObject =>
  asObject(format["json_schema"]) ??
  failMalformed("response_format.json_schema", "must be an object");

/**
 * Decodes all forms of reasoning settings into one. `auto` is the model's default behavior. `auto`
 * with `show: "full"` means that reasoning is enabled without an effort or budget.
 */
export function reasoningOf(fields: JsonObject): Reasoning {
  const fieldsPresent: Record<string, Json> = {};
  for (const field of REASONING_FIELDS)
    if (fields[field] != null) fieldsPresent[field] = fields[field];
  return rememberSource(parseReasoning(fieldsPresent), fieldsPresent);
}

function parseReasoning(fields: JsonObject): Reasoning {
  const thinking = asObject(fields["thinking"]);
  const wild = asObject(fields["reasoning"]);
  const effort = asText(fields["reasoning_effort"]) ?? asText(wild?.["effort"]);
  const budget =
    asNumber(thinking?.["budget_tokens"]) ??
    asNumber(wild?.["max_tokens"]) ??
    asNumber(fields["thinking_budget"]);
  const show = wild?.["exclude"] === true ? ("none" as const) : undefined;
  if (
    thinking?.["type"] === "disabled" ||
    effort === "none" ||
    wild?.["enabled"] === false ||
    fields["enable_thinking"] === false
  )
    return { mode: "off" };
  if (effort !== undefined) return omitUndefined({ mode: "effort" as const, effort, show });
  if (budget !== undefined) return omitUndefined({ mode: "budget" as const, budget, show });
  const on =
    thinking?.["type"] === "enabled" ||
    wild?.["enabled"] === true ||
    fields["enable_thinking"] === true;
  return omitUndefined({
    mode: "auto" as const,
    show: show ?? (on ? ("full" as const) : undefined),
  });
}

/**
 * Returns the key that identifies a conversation: its tools and all messages up to the first user
 * message.
 */
export function conversationKey(body: Body): ConversationKey {
  const messages = asList(body["messages"]);
  const first = messages.findIndex((message) => isObject(message) && message["role"] === "user");
  return {
    id: asText(body["prompt_cache_key"]),
    prefix: [body["tools"], ...(first < 0 ? [] : messages.slice(0, first + 1))],
  };
}

// Decodes tool declarations and the tool choice.

function toolsOf(fields: JsonObject): readonly Tool[] {
  const tools = asList(fields["tools"]).map((raw, i) =>
    rememberSource(toolOf(raw, `tools[${i}]`), raw),
  );
  if (tools.length === 0)
    asList(fields["functions"]).forEach((raw, i) => {
      const at = `functions[${i}]`;
      tools.push(functionOf(asObject(raw) ?? failMalformed(at, "must be an object"), at));
    });
  // Web search is a tool in other protocols and a field in this one.
  const search = asObject(fields["web_search_options"]);
  if (search) tools.push({ type: "hosted", name: "web_search", origin: ID, raw: search });
  return tools;
}

function toolOf(raw: Json, at: string): Tool {
  const tool = asObject(raw);
  const type = asText(tool?.["type"]);
  if (!tool || type === undefined) return failMalformed(at, "must be an object with a type");
  const fn = asObject(tool["function"]);
  if (fn)
    return omitUndefined({
      ...functionOf(fn, `${at}.function`),
      cache: tool["cache_control"] ?? undefined,
    });
  const custom = asObject(tool["custom"]);
  if (!custom) return { type: "hosted", name: asText(tool["name"]) ?? type, origin: ID, raw: tool };
  const format = asObject(custom["format"]);
  const grammar = asObject(format?.["grammar"]);
  return omitUndefined({
    type: "custom" as const,
    name: asText(custom["name"]) ?? failMalformed(`${at}.custom.name`, "must be a string"),
    description: asText(custom["description"]),
    // Other protocols put a grammar one level higher.
    raw: grammar ? { type: "grammar", ...grammar } : format,
  });
}

const functionOf = (fn: JsonObject, at: string): Tool =>
  omitUndefined({
    type: "function" as const,
    name: asText(fn["name"]) ?? failMalformed(`${at}.name`, "must be a string"),
    description: asText(fn["description"]),
    schema: asObject(fn["parameters"]),
    strict: asBoolean(fn["strict"]),
  });

/**
 * Decodes the tool choice. A choice that the common form cannot represent is returned in `kept` and
 * sent back unchanged.
 */
function choiceOf(raw: Opt<Json>): { choice: ChatRequest["toolChoice"]; kept?: Json } {
  if (raw === undefined || raw === null) return { choice: undefined };
  if (raw === "auto" || raw === "none" || raw === "required") return { choice: raw };
  if (raw === "any") return { choice: "required" };
  const choice = asObject(raw);
  const allowed = asObject(choice?.["allowed_tools"]);
  if (allowed) {
    const names = asList(allowed["tools"]).flatMap((t) => named(asObject(t)) ?? []);
    return { choice: rememberSource({ names, must: allowed["mode"] === "required" }, raw) };
  }
  const name = named(choice);
  return name === undefined
    ? { choice: undefined, kept: raw }
    : { choice: { names: [name], must: true } };
}

const named = (of: JsonObject | undefined): string | undefined =>
  asText(asObject(of?.["function"])?.["name"]) ??
  asText(asObject(of?.["custom"])?.["name"]) ??
  asText(of?.["name"]);
