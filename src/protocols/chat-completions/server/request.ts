// Server half: a body as a request. Nothing is lost: what only this protocol says stands in `ext` under its own name,
// what no codec knows in `rest`, and what stays untouched remembers its own words.
import type { Body, ChatRequest, Json, JsonObject, Opt, Reasoning } from "../../../plugin/index.ts";
import { answerFormat } from "../../answer-format.ts";
import { multiplies } from "../../amounts.ts";
import { strangersIn, unknownIn } from "../../strangers.ts";
import { KNOWN_INSIDE } from "../known.ts";
import { flag, list, number, object, present, text } from "../../json.ts";
import { came, ID, names } from "../words.ts";
import { malformed } from "./content.ts";
import { conversation } from "./turns.ts";
import { choiceOf, toolsOf } from "./tools.ts";

/** Fields with a place in the common vocabulary. */
const COMMON = names(
  "model messages stream max_tokens max_completion_tokens stop temperature top_p top_k n presence_penalty",
  "frequency_penalty logit_bias logprobs top_logprobs seed response_format verbosity modalities tools tool_choice",
  "parallel_tool_calls functions function_call metadata store service_tier prompt_cache_key prompt_cache_retention",
  "safety_identifier user web_search_options stream_options",
);

/** Ways to say how much to think; only the first two are in the service's documentation. */
const THINKING = [
  "thinking",
  "reasoning_effort",
  "reasoning",
  "enable_thinking",
  "thinking_budget",
] as const;

/** Fields that only this protocol knows. */
const OWN = [
  "audio",
  "prediction",
  "moderation",
  "prompt_cache_options",
  "include_reasoning",
] as const;

const KNOWN: ReadonlySet<string> = new Set([...COMMON, ...THINKING, ...OWN]);

/** All that this wire knows, in any dialect of it. */
export const knows = (field: string): boolean => KNOWN.has(field) || multiplies(field);

export function request(body: Body): ChatRequest {
  const fields = body as JsonObject;
  const { instructions, turns } = conversation(list(fields["messages"]));
  const { choice, kept } = choiceOf(fields["tool_choice"] ?? fields["function_call"]);
  const format = answerFormat(fields["response_format"], schemaIn);
  const ext: Record<string, Json> = { ...strangersIn(fields, KNOWN_INSIDE) };
  for (const field of OWN) if (fields[field] != null) ext[field] = fields[field];
  if (kept !== undefined) ext["tool_choice"] = kept;
  if (fields["response_format"] != null && !format)
    ext["response_format"] = fields["response_format"];
  const identifier = text(fields["safety_identifier"]);
  const user = text(fields["user"]);
  if (identifier !== undefined) ext["safety_identifier"] = identifier;
  if (fields["top_k"] != null) ext["top_k"] = fields["top_k"];
  const legacy = list(fields["tools"]).length === 0 && list(fields["functions"]).length > 0;
  return present({
    kind: "chat" as const,
    model: text(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    user: user ?? identifier,
    instructions,
    turns,
    tools: toolsOf(fields),
    toolChoice: choice,
    // The oldest form has room for one call in an answer.
    parallel: legacy ? false : flag(fields["parallel_tool_calls"]),
    output: present({
      maxTokens: number(fields["max_completion_tokens"]) ?? number(fields["max_tokens"]),
      stop: stopOf(fields["stop"]),
      verbosity: text(fields["verbosity"]),
      modalities: modalitiesOf(fields["modalities"]),
      format,
    }),
    sampling: present({
      temperature: number(fields["temperature"]),
      topP: number(fields["top_p"]),
      topK: number(fields["top_k"]),
      presence: number(fields["presence_penalty"]),
      frequency: number(fields["frequency_penalty"]),
      seed: number(fields["seed"]),
      n: number(fields["n"]),
      logprobs: fields["logprobs"] === true ? (number(fields["top_logprobs"]) ?? 0) : undefined,
      logitBias: object(fields["logit_bias"]),
    }),
    reasoning: reasoningOf(fields),
    cache: cacheOf(fields),
    tier: text(fields["service_tier"]),
    metadata: object(fields["metadata"]),
    state: present({ store: flag(fields["store"]) }),
    rest: unknownIn(fields, (field) => KNOWN.has(field)),
    // Always there, even empty: it says that the request came in this protocol.
    ext: { [ID]: ext },
  });
}

function stopOf(stop: Opt<Json>): readonly string[] | undefined {
  const all = typeof stop === "string" ? [stop] : list(stop).flatMap((s) => text(s) ?? []);
  const some = all.filter((s) => s !== "");
  return some.length > 0 ? some : undefined;
}

function modalitiesOf(modalities: Opt<Json>): readonly string[] | undefined {
  const all = list(modalities).flatMap((m) => text(m) ?? []);
  return all.length > 0 ? all : undefined;
}

/** In a member of its own. */
const schemaIn = (format: JsonObject): JsonObject =>
  object(format["json_schema"]) ?? malformed("response_format.json_schema", "must be an object");

function cacheOf(fields: JsonObject): ChatRequest["cache"] {
  const key = text(fields["prompt_cache_key"]);
  const retention = text(fields["prompt_cache_retention"]);
  return key === undefined && retention === undefined ? undefined : present({ key, retention });
}

/**
 * All the ways to ask for reasoning come to one. `auto` is the model's own habit; `auto` that shows its reasoning is
 * thinking switched on, without a word about how much.
 */
export function reasoningOf(fields: JsonObject): Reasoning {
  const said: Record<string, Json> = {};
  for (const field of THINKING) if (fields[field] != null) said[field] = fields[field];
  return came(meaning(said), said);
}

function meaning(said: JsonObject): Reasoning {
  const thinking = object(said["thinking"]);
  const wild = object(said["reasoning"]);
  const effort = text(said["reasoning_effort"]) ?? text(wild?.["effort"]);
  const budget =
    number(thinking?.["budget_tokens"]) ??
    number(wild?.["max_tokens"]) ??
    number(said["thinking_budget"]);
  const show = wild?.["exclude"] === true ? ("none" as const) : undefined;
  if (
    thinking?.["type"] === "disabled" ||
    effort === "none" ||
    wild?.["enabled"] === false ||
    said["enable_thinking"] === false
  )
    return { mode: "off" };
  if (effort !== undefined) return present({ mode: "effort" as const, effort, show });
  if (budget !== undefined) return present({ mode: "budget" as const, budget, show });
  const on =
    thinking?.["type"] === "enabled" ||
    wild?.["enabled"] === true ||
    said["enable_thinking"] === true;
  return present({ mode: "auto" as const, show: show ?? (on ? ("full" as const) : undefined) });
}
