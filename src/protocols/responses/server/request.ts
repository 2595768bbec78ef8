// Server half: decodes a client's request without loss. Fields that only this protocol has are kept
// in `ext.responses`, and unknown fields in `rest`. Turns and tools keep their original JSON while
// they are unchanged.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Body } from "../../../model/values.ts";
import type { ChatRequest, Json, JsonObject, Turn } from "../../../plugin/index.ts";
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
import { STORED_PROMPT, toOpaqueBlock, rememberSource, ORIGIN } from "../constants.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import { choiceOf, toolsOf } from "../tools.ts";
import { parseInput } from "./turns.ts";

/** Fields that the common form can express. */
const COMMON_FIELDS = new Set([
  "model",
  "input",
  "instructions",
  "stream",
  "max_output_tokens",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "store",
  "previous_response_id",
  "conversation",
  "background",
  "temperature",
  "top_p",
  "top_logprobs",
  "presence_penalty",
  "frequency_penalty",
  "metadata",
  "user",
  "safety_identifier",
  "service_tier",
  "prompt_cache_key",
  "prompt_cache_retention",
]);

/** Fields that only this protocol has. Providers of other protocols do not receive them. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "max_tool_calls",
  "truncation",
  "prompt",
  "context_management",
  "moderation",
  "access_programs",
  "image",
  "prompt_cache_options",
];

/**
 * Fields that only this protocol has and whose loss is not reported. They request something that is
 * always provided or that only concerns the client's own vendor.
 */
const IGNORED_FIELDS = ["include", "stream_options", "client_metadata"];

const KNOWN = new Set([...COMMON_FIELDS, ...PROTOCOL_FIELDS, ...IGNORED_FIELDS]);

/** Returns whether any dialect of this protocol has the field. */
export const knowsField = (field: string): boolean => KNOWN.has(field) || isMultiplierField(field);

export function decodeRequest(body: Body): ChatRequest {
  const fields = body as JsonObject;
  const say = parseInput(fields["input"], asText(fields["instructions"]));
  // The model reads a stored prompt first.
  const stored = asObject(fields["prompt"]);
  const first: readonly Turn[] = stored
    ? [
        rememberSource(
          { role: "user", blocks: [toOpaqueBlock({ ...stored, type: STORED_PROMPT })] },
          [],
        ),
      ]
    : [];
  const { choice, kept } = choiceOf(fields["tool_choice"]);
  const reasoning = asObject(fields["reasoning"]);
  const words = asObject(fields["text"]);
  const ext: Record<string, Json> = { ...findUnknownFields(fields, KNOWN_FIELDS) };
  for (const field of PROTOCOL_FIELDS)
    // Other protocols never truncate the input.
    if (fields[field] != null && fields[field] !== "disabled") ext[field] = fields[field];
  const quiet: Record<string, Json> = { ...summaryStyle(reasoning) };
  for (const field of IGNORED_FIELDS) if (fields[field] != null) quiet[field] = fields[field];
  const { tools, bound } = toolsOf(fields);
  Object.assign(ext, bound);
  if (kept !== undefined) ext["tool_choice"] = kept;
  const format = parseResponseFormat(words?.["format"], schemaIn);
  const odd = format === undefined && words?.["format"] != null ? { format: words["format"] } : {};
  const wording = { ...without(words, ["format", "verbosity"]), ...odd };
  if (Object.keys(wording).length > 0) ext["text"] = wording;
  const more = without(reasoning, ["effort", "summary"]);
  if (Object.keys(more).length > 0) ext["reasoning"] = more;
  const identifier = asText(fields["safety_identifier"]);
  if (identifier !== undefined && asText(fields["user"]) !== undefined)
    ext["user"] = fields["user"]!;
  return omitUndefined({
    operation: "chat" as const,
    model: asText(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    user: identifier ?? asText(fields["user"]),
    ...say,
    turns: [...first, ...say.turns],
    tools,
    toolChoice: choice,
    parallelToolCalls: asBoolean(fields["parallel_tool_calls"]),
    output: omitUndefined({
      maxTokens: asNumber(fields["max_output_tokens"]),
      verbosity: asText(words?.["verbosity"]),
      format,
    }),
    sampling: omitUndefined({
      temperature: asNumber(fields["temperature"]),
      topP: asNumber(fields["top_p"]),
      presence: asNumber(fields["presence_penalty"]),
      frequency: asNumber(fields["frequency_penalty"]),
      logprobs: logprobsOf(fields),
    }),
    reasoning: reasoningOf(reasoning),
    cache: parsePromptCache(fields),
    tier: asText(fields["service_tier"]),
    metadata: asObject(fields["metadata"]),
    state: omitUndefined({
      store: asBoolean(fields["store"]),
      previousId: asText(fields["previous_response_id"]),
      conversation:
        asText(fields["conversation"]) ?? asText(asObject(fields["conversation"])?.["id"]),
      background: asBoolean(fields["background"]),
    }),
    rest: unknownTopLevelFields(fields, (field) => KNOWN.has(field)),
    // Always present, even if empty. It shows that the request was made in this protocol.
    ext: { [ORIGIN]: rememberSource(ext, quiet) },
  });
}

function without(o: JsonObject | undefined, keys: readonly string[]): Record<string, Json> {
  const left: Record<string, Json> = {};
  for (const key in o) if (!keys.includes(key) && o[key] != null) setOwnProperty(left, key, o[key]);
  return left;
}

/**
 * Returns the style of a reasoning summary. The common form only expresses whether a summary is
 * requested.
 */
function summaryStyle(reasoning: JsonObject | undefined): { summary?: Json } {
  const summary = reasoning?.["summary"];
  return typeof summary === "string" ? { summary } : {};
}

function reasoningOf(reasoning: JsonObject | undefined): ChatRequest["reasoning"] {
  const effort = asText(reasoning?.["effort"]);
  const summary = asText(reasoning?.["summary"]) ?? asText(reasoning?.["generate_summary"]);
  const show: ChatRequest["reasoning"]["show"] =
    summary === undefined ? undefined : summary === "none" ? "none" : "summary";
  if (effort === "none") return omitUndefined({ mode: "off" as const, show });
  return effort === undefined
    ? omitUndefined({ mode: "auto" as const, show })
    : omitUndefined({ mode: "effort" as const, effort, show });
}

/** The schema is in the format itself. */
const schemaIn = (format: JsonObject): JsonObject => format;

export const LOGPROBS = "message.output_text.logprobs";

function logprobsOf(fields: JsonObject): number | undefined {
  const top = asNumber(fields["top_logprobs"]);
  if (top) return top;
  return asList(fields["include"]).includes(LOGPROBS) ? 0 : undefined;
}

/**
 * Returns the conversation key: the instructions, the tools, and the input up to the first user
 * message.
 */
export function conversationKey(body: Body): ConversationKey {
  const { input } = body;
  const items = asList(input);
  const first = items.findIndex((item) => isObject(item) && item["role"] === "user");
  return {
    id: asText(body["prompt_cache_key"]),
    prefix: [
      body["instructions"],
      body["tools"],
      ...(typeof input === "string" ? [input] : items.slice(0, first + 1)),
    ],
  };
}
