// Client half: encodes a request as a body in OpenAI's own form. `prepare` then adapts it to the
// backend, in both modes.
import { fail } from "../../../model/error.ts";
import type {
  CallContext,
  Body,
  ChatRequest,
  Json,
  JsonObject,
  Opt,
  Tool,
} from "../../../plugin/index.ts";
import { fitName, indexByName } from "../../tool-calls.ts";
import { traitsOf, type ChatDialect } from "../dialect.ts";
import { delegateStopSequences } from "../../chat-parameters.ts";
import { restoreUnknownFields } from "../../unknown-fields.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import { reasoningOf } from "../server/request.ts";
import { asObject, omitUndefined, asText } from "../../json-values.ts";
import { sourceOf, ID } from "../constants.ts";
import { createContentContext, type ContentContext } from "./content.ts";
import { messagesOf, MAX_TOOL_NAME } from "./messages.ts";
import { effortForBudget } from "../../reasoning-support.ts";
import { rejectTool } from "../../tool-declarations.ts";

export function encodeRequest(r: ChatRequest, of: CallContext, dialect: ChatDialect): Body {
  const to = createContentContext(of, traitsOf(dialect, of.model));
  const own = asObject(r.ext[ID]);
  const name = (n: string): string => (own ? n : fitName(n, MAX_TOOL_NAME));
  rejectUnsupported(r, of);
  reportForeignFields(r, to);
  reportAutoCache(r, to);
  const tools = r.tools.flatMap((t) => toWireTool(t, to, name) ?? []);
  const search = r.tools.find((t) => t.origin === ID && !("type" in (asObject(t.raw) ?? {})));
  const body = omitUndefined({
    model: of.model,
    messages: messagesOf(r, to, { name }),
    stream: of.stream,
    stream_options: of.stream ? optionsOf(own) : undefined,
    max_completion_tokens: r.output.maxTokens,
    temperature: r.sampling.temperature,
    top_p: r.sampling.topP,
    top_k: topKOf(r, to, own),
    presence_penalty: r.sampling.presence,
    frequency_penalty: r.sampling.frequency,
    seed: r.sampling.seed,
    n: r.sampling.n,
    logit_bias: r.sampling.logitBias,
    logprobs: r.sampling.logprobs === undefined ? undefined : true,
    top_logprobs: r.sampling.logprobs || undefined,
    stop: stopTo(r, of),
    verbosity: r.output.verbosity,
    modalities: modalitiesOf(r),
    response_format: (own?.["response_format"] ?? formatOf(r)) as Json | undefined,
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: own?.["tool_choice"] ?? toWireToolChoice(r, to, name),
    parallel_tool_calls: tools.length > 0 ? r.parallelToolCalls : undefined,
    web_search_options: search?.raw ?? webSearchOptions(r, to),
    ...reasoningFields(r, to, own !== undefined),
    prompt_cache_key: r.cache?.key,
    prompt_cache_retention: r.cache?.auto ? undefined : r.cache?.retention,
    service_tier: tierOf(r, to, own !== undefined),
    user: r.user !== undefined && r.user === own?.["safety_identifier"] ? undefined : r.user,
    metadata: metadataOf(r, to, own !== undefined),
    store: own ? r.state.store : undefined,
    ...ownFields(own),
  });
  return restoreUnknownFields(body, own, KNOWN_FIELDS, to.lose);
}

/** Maximum number of stop sequences that the API accepts. */
export const MAX_STOP_SEQUENCES = 4;

/** Returns the stop sequences to send. The host emulates the rest. */
function stopTo({ output: { stop } }: ChatRequest, of: CallContext): Opt<Json> {
  delegateStopSequences(stop?.slice(MAX_STOP_SEQUENCES) ?? [], of);
  return stop?.slice(0, MAX_STOP_SEQUENCES);
}

/**
 * Rejects requests with settings that would have to be ignored. Another candidate may support them.
 */
function rejectUnsupported(r: ChatRequest, of: CallContext): void {
  const no = (message: string, param: string) =>
    fail("unsupported", message, { code: "unsupported_parameter", param });
  if (of.actionType !== "generate")
    no("This model's protocol does not support token counting.", "model");
  if ((r.sampling.n ?? 1) > 1)
    no("Multiple choices in one response cannot be translated. Use n: 1.", "n");
  if (r.state.previousId !== undefined)
    no(
      "This model's provider does not store responses. Send the whole history instead.",
      "previous_response_id",
    );
  if (r.state.conversation !== undefined)
    no(
      "This model's provider does not store conversations. Send the whole history instead.",
      "conversation",
    );
  if (r.state.background === true)
    no("This model's provider does not support background responses.", "background");
}

/** Fields of other protocols that do not affect the response. */
const IGNORED_FIELDS = new Set([
  "client_metadata",
  "stream_options",
  "include",
  "betas",
  "anthropic_beta",
  "anthropic_version",
  "diagnostics",
  "safeguards",
]);

/** Reports fields that exist only in another protocol and cannot be encoded here. */
function reportForeignFields(r: ChatRequest, to: ContentContext): void {
  for (const id in r.ext) {
    if (id === ID) continue;
    for (const field in asObject(r.ext[id]))
      if (!IGNORED_FIELDS.has(field)) to.lose(field, "dropped", "foreign_field");
  }
}

const OPTION = "stream_options.";

/**
 * Returns members of `stream_options` that no codec handles. `prepare` adds the gateway's own
 * members.
 */
function optionsOf(own: JsonObject | undefined): JsonObject | undefined {
  const paths = Object.keys(own ?? {}).filter((path) => path.startsWith(OPTION));
  return paths.length > 0
    ? Object.fromEntries(paths.map((path) => [path.slice(OPTION.length), own![path]]))
    : undefined;
}

const ownFields = (own: JsonObject | undefined): JsonObject => {
  const fields: Record<string, Json> = {};
  for (const key of [
    "audio",
    "prediction",
    "moderation",
    "prompt_cache_options",
    "include_reasoning",
    "safety_identifier",
  ])
    if (own?.[key] !== undefined) fields[key] = own[key];
  return fields;
};

/**
 * Reports automatic caching as dropped, because in this protocol the provider decides what to
 * cache.
 */
function reportAutoCache(r: ChatRequest, to: ContentContext): void {
  if (r.cache?.auto) to.lose("cache_control", "dropped");
}

function topKOf(
  r: ChatRequest,
  to: ContentContext,
  own: JsonObject | undefined,
): number | undefined {
  if (r.sampling.topK === undefined || to.traits.topK || own?.["top_k"] !== undefined)
    return r.sampling.topK;
  to.lose("top_k", "dropped");
  return undefined;
}

function modalitiesOf(r: ChatRequest): Json | undefined {
  const { modalities } = r.output;
  return modalities && !(modalities.length === 1 && modalities[0] === "text")
    ? modalities
    : undefined;
}

function formatOf(r: ChatRequest): JsonObject | undefined {
  const { format } = r.output;
  if (!format) return undefined;
  if (format.type !== "schema") return { type: format.type === "json" ? "json_object" : "text" };
  const { schema, name, strict, description } = format;
  // This protocol requires a name, which other protocols do not have.
  return {
    type: "json_schema",
    json_schema: omitUndefined({ name: name ?? "response", description, schema, strict }),
  };
}

/**
 * Returns the reasoning fields. The client's own fields are used if they still express the
 * reasoning settings of the request.
 */
function reasoningFields(r: ChatRequest, to: ContentContext, own: boolean): JsonObject {
  const source = sourceOf<JsonObject>(r.reasoning);
  if (own && source && same(reasoningOf(source), r.reasoning)) return source;
  const { mode, effort, budget, show } = r.reasoning;
  switch (mode) {
    case "off":
      return { reasoning_effort: "none" };
    case "effort":
      return { reasoning_effort: effort };
    case "budget":
      to.lose("thinking.budget_tokens", "approximated");
      return { reasoning_effort: effortForBudget(budget ?? 0) };
    case "auto":
      return show === "full" ? { thinking: { type: "enabled" } } : {};
  }
}

const same = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);

const TIERS = new Set(["auto", "default", "flex", "scale", "priority", "fast"]);

function tierOf(r: ChatRequest, to: ContentContext, own: boolean): string | undefined {
  if (r.tier === undefined || own || TIERS.has(r.tier)) return r.tier;
  if (r.tier === "standard_only") return "default";
  to.lose("service_tier", "dropped");
  return undefined;
}

/**
 * Returns the metadata if the request came in this protocol. Requests from other protocols are not
 * stored, so metadata would have no effect, and some models reject it with an error.
 */
function metadataOf(r: ChatRequest, to: ContentContext, own: boolean): JsonObject | undefined {
  if (r.metadata === undefined || own) return r.metadata;
  to.lose("metadata", "dropped");
  return undefined;
}

// Encodes tool declarations and the tool choice.

function toWireTool(tool: Tool, to: ContentContext, name: (n: string) => string): Json | undefined {
  const from = sourceOf<Json>(tool);
  if (from !== undefined && !(tool.type === "custom" && to.traits.customTools === false))
    return from;
  switch (tool.type) {
    case "function": {
      if (tool.cache !== undefined && to.traits.cacheMarks !== "cache_control")
        to.lose("tools.cache_control", "dropped");
      return omitUndefined({
        type: "function",
        function: omitUndefined({
          name: name(tool.name),
          description: tool.description,
          parameters: tool.schema ?? { type: "object", properties: {} },
          strict: tool.strict,
        }),
        cache_control: to.traits.cacheMarks === "cache_control" ? tool.cache : undefined,
      });
    }
    case "custom":
      return to.traits.customTools === false
        ? wrapCustomTool(tool, to, name)
        : customOf(tool, name);
    case "hosted": {
      if (tool.origin === ID) return "type" in (asObject(tool.raw) ?? {}) ? tool.raw : undefined;
      if (/^(?:web_search|web_fetch|tool_search)/.test(tool.name)) return undefined;
      return rejectTool(tool);
    }
  }
}

function customOf(tool: Tool, name: (n: string) => string): JsonObject {
  const raw = asObject(tool.raw);
  const { type, ...grammar } = raw ?? {};
  const format = type === "grammar" && !("grammar" in grammar) ? { type, grammar } : raw;
  return {
    type: "custom",
    custom: omitUndefined({ name: name(tool.name), description: tool.description, format }),
  };
}

/**
 * Converts a freeform tool into a function with one string parameter. The codec of the client's
 * protocol extracts the string from the call.
 */
function wrapCustomTool(tool: Tool, to: ContentContext, name: (n: string) => string): JsonObject {
  to.lose("tools.custom", "approximated", "custom_tool_wrapped");
  const definition = asText(asObject(tool.raw)?.["definition"]);
  const description = [
    tool.description,
    definition === undefined ? undefined : `The input must follow this grammar:\n${definition}`,
  ].filter((s) => s !== undefined);
  return {
    type: "function",
    function: omitUndefined({
      name: name(tool.name),
      description: description.length > 0 ? description.join("\n\n") : undefined,
      parameters: {
        type: "object",
        properties: { input: { type: "string" } },
        required: ["input"],
        additionalProperties: false,
      },
    }),
  };
}

/**
 * Returns the web search options. In this protocol, web search is a field instead of a tool. If the
 * model does not support it, the client receives a warning that no search takes place.
 */
function webSearchOptions(r: ChatRequest, to: ContentContext): JsonObject | undefined {
  const hosted = r.tools.filter((t) => t.type === "hosted" && t.origin !== ID);
  const search = hosted.find((t) => t.name.startsWith("web_search"));
  for (const tool of hosted)
    if (tool !== search || !to.traits.webSearch)
      to.lose(`tools.${tool.name}`, "dropped", "hosted_tool");
  if (!search || !to.traits.webSearch) return undefined;
  to.lose("tools.web_search", "approximated");
  const raw = asObject(search.raw) ?? {};
  const { type: _, ...place } = asObject(raw["user_location"]) ?? {};
  return omitUndefined({
    search_context_size: raw["search_context_size"],
    user_location:
      Object.keys(place).length > 0 ? { type: "approximate", approximate: place } : undefined,
  });
}

function toWireToolChoice(
  r: ChatRequest,
  to: ContentContext,
  name: (n: string) => string,
): Json | undefined {
  const choice = r.toolChoice;
  if (choice === undefined || typeof choice === "string")
    return r.tools.length > 0 ? choice : undefined;
  const from = sourceOf<Json>(choice);
  if (from !== undefined && to.traits.customTools !== false) return from;
  const declared = indexByName(r.tools);
  const refer = (n: string): JsonObject => {
    const tool = declared.get(n);
    const custom = tool?.type === "custom" && to.traits.customTools !== false;
    return custom
      ? { type: "custom", custom: { name: name(n) } }
      : { type: "function", function: { name: name(n) } };
  };
  const tools = choice.names.map(refer);
  if (choice.must && tools.length === 1) return tools[0];
  return {
    type: "allowed_tools",
    allowed_tools: { mode: choice.must ? "required" : "auto", tools },
  };
}
