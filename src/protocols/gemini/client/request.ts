import { setOwnProperty } from "../../../lib/set-own-property.ts";
import { fail } from "../../../model/error.ts";
import type { ChatRequest, Reasoning } from "../../../model/request.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { delegateStopSequences } from "../../chat-parameters.ts";
import { contentsTo, systemTo } from "./contents.ts";
import { createEncoding, failUnsupported, type GeminiEncoding } from "./encoding-context.ts";
import { toOpenApiSubset } from "./openapi-schema.ts";
import { choiceTo, toolsTo } from "./tools.ts";
import {
  KNOWN_INSIDE,
  sourceOf,
  parseExtraConfig,
  ID,
  isGeminiFieldName,
  knowsField,
  PASSED_THROUGH_FIELDS,
} from "../constants.ts";
import type { FullGeminiTraits } from "../dialect.ts";
import {
  ownEntry,
  asObject,
  omitUndefined,
  omitUndefinedOrNothing,
  asText,
} from "../../json-values.ts";
import {
  supportedSampling,
  EFFORT_BUDGETS,
  effortForBudget,
  nearestEffort,
  reasoningSupportOf,
} from "../../reasoning-support.ts";
import { restoreUnknownFields } from "../../unknown-fields.ts";

/**
 * Encodes a request as a body. Content that this protocol cannot represent is rejected or reported,
 * never dropped silently.
 */
export function encodeRequest(
  request: ChatRequest,
  of: CallContext,
  traits: FullGeminiTraits,
): Body {
  const r = { ...request, sampling: supportedSampling(request, of) };
  const e = createEncoding(r, of, traits);
  const { passed, kept } = restOf(r, e);
  rejectUnsupported(r);
  reportForeignFields(r, e);
  const tools = toolsTo(r, e);
  const own = asObject(r.ext[ID]);
  const requestBody = omitUndefined({
    ...ownFields(own),
    contents: contentsTo(r, e),
    systemInstruction: systemTo(r.instructions, e),
    tools,
    toolConfig: omitUndefinedOrNothing({ ...choiceTo(r, tools, e), ...within(own, "toolConfig") }),
    generationConfig: omitUndefinedOrNothing({
      ...passed.config,
      ...config(r, tools, e),
      ...within(own, "generationConfig"),
    }),
    serviceTier: tierTo(r, e),
    store: own ? r.state.store : undefined,
  });
  const body = restoreUnknownFields(requestBody, own, KNOWN_INSIDE, e.of.reportLoss.bind(e.of));
  if (of.actionType !== "count") return { ...body, ...kept };
  const whole = { ...passed.fields, ...body, model: nameOf(of.model) };
  const apart = Object.fromEntries(Object.keys(passed.fields).map((field) => [field, undefined]));
  return { generateContentRequest: whole, ...kept, ...apart };
}

/** Returns the fields that only this protocol has, if the client used this protocol. */
function ownFields(own: JsonObject | undefined): JsonObject {
  const fields: Record<string, Json | undefined> = {};
  for (const field of PASSED_THROUGH_FIELDS) fields[field] = own?.[field];
  return fields;
}

/** Returns the members of an object that are carried in `ext` by their path. */
function within(own: JsonObject | undefined, field: string): JsonObject {
  const members: Record<string, Json | undefined> = {};
  for (const path in own) {
    const name = path.startsWith(`${field}.`) ? path.slice(field.length + 1) : "";
    if (name !== "" && !/[.[]/.test(name)) setOwnProperty(members, name, own[path]);
  }
  return members;
}

/**
 * Returns the resource name of a model: "models/gemini-x", or the name itself if it contains a
 * path.
 */
export const nameOf = (model: string): string => (model.includes("/") ? model : `models/${model}`);

/**
 * Handles fields that no codec encodes. This API rejects a request with one unknown field. Fields
 * that cannot be meant for it are set to undefined, so that they are not sent. The host adds all
 * other fields.
 */
function restOf(
  r: ChatRequest,
  e: GeminiEncoding,
): {
  passed: { fields: JsonObject; config: JsonObject };
  kept: { readonly [field: string]: undefined };
} {
  const passed: Record<string, Json> = {};
  let within: JsonObject = {};
  const kept: Record<string, undefined> = {};
  for (const [field, value] of Object.entries(r.rest)) {
    if (value === undefined) continue;
    if (field === "generationConfig")
      within = parseExtraConfig(value, (member) =>
        e.of.reportLoss(member, "dropped", "foreign_field"),
      );
    // If the client used this protocol, the field is meant for this API.
    else if (ID in r.ext || (isGeminiFieldName(field) && !knowsField(field)))
      setOwnProperty(passed, field, value);
    else {
      setOwnProperty(kept, field, undefined);
      e.of.reportLoss(field, "dropped", knowsField(field) ? "foreign_field" : "unknown_to_gemini");
    }
  }
  return { passed: { fields: passed, config: within }, kept };
}

/** Maximum number of stop sequences that the API accepts. */
export const MAX_STOP_SEQUENCES = 5;

/** Rejects settings that change the form of the response. */
function rejectUnsupported(r: ChatRequest): void {
  if ((r.sampling.n ?? 1) > 1) failUnsupported("n > 1", "n", "unsupported_value");
  const { previousId, conversation, background } = r.state;
  if (previousId !== undefined)
    failUnsupported("previous_response_id", "previous_response_id", "unsupported_parameter");
  if (conversation !== undefined)
    failUnsupported("conversation", "conversation", "unsupported_parameter");
  if (background) failUnsupported("background", "background", "unsupported_parameter");
}

/** Fields of other protocols that do not affect the response. */
const IGNORED_FIELDS: ReadonlySet<string> = new Set([
  "anthropic_beta",
  "anthropic_version",
  "betas",
  "client_metadata",
  "diagnostics",
  "include",
  "safeguards",
  "safety_identifier",
  "stream_options",
  "thinking_display",
  "top_k",
]);

/** Reports settings that this protocol does not have, and fields that only another protocol has. */
function reportForeignFields(r: ChatRequest, { of }: GeminiEncoding): void {
  const { logitBias } = r.sampling;
  const lost: Record<string, unknown> = {
    logit_bias: logitBias && Object.keys(logitBias).length > 0 ? logitBias : undefined,
    verbosity: r.output.verbosity,
    prompt_cache_key: r.cache?.key,
    prompt_cache_retention: r.cache?.retention,
    cache_control: r.cache?.auto || undefined,
    metadata: r.metadata && Object.keys(r.metadata).length > 0 ? r.metadata : undefined,
    user: r.user,
  };
  for (const field in lost) if (lost[field] !== undefined) of.reportLoss(field, "dropped");
  for (const protocol in r.ext) {
    if (protocol === ID) continue;
    for (const field in asObject(r.ext[protocol]))
      if (!IGNORED_FIELDS.has(field)) of.reportLoss(field, "dropped", "foreign_field");
  }
}

function config(r: ChatRequest, tools: readonly Json[] | undefined, e: GeminiEncoding): JsonObject {
  const { temperature, topP, topK, presence, frequency, logprobs } = r.sampling;
  const stop = (r.output.stop ?? []).filter((s) => s !== "");
  delegateStopSequences(stop.slice(MAX_STOP_SEQUENCES), e.of);
  return omitUndefined({
    maxOutputTokens: r.output.maxTokens,
    temperature,
    topP,
    topK,
    presencePenalty: presence,
    frequencyPenalty: frequency,
    seed: seedTo(r, e),
    stopSequences: stop.length > 0 ? stop.slice(0, MAX_STOP_SEQUENCES) : undefined,
    responseLogprobs: logprobs === undefined ? undefined : true,
    logprobs: logprobs || undefined,
    responseModalities: modalitiesTo(r, e),
    thinkingConfig: thinkingTo(r, e),
    ...formatTo(r, tools, e),
  });
}

const INT32 = 2 ** 31;

function seedTo({ sampling: { seed } }: ChatRequest, e: GeminiEncoding): number | undefined {
  if (seed === undefined || (Number.isInteger(seed) && seed >= -INT32 && seed < INT32)) return seed;
  e.of.reportLoss("seed", "dropped", "seed_too_large");
  return undefined;
}

function modalitiesTo(
  { output: { modalities } }: ChatRequest,
  e: GeminiEncoding,
): Json | undefined {
  if (!modalities || modalities.every((m) => m === "text")) return undefined;
  // Each protocol has its own names for voices and audio formats, so these settings are not
  // translated.
  if (modalities.includes("audio"))
    e.of.reportLoss("modalities", "approximated", "audio_as_it_comes");
  return modalities.map((m) => m.toUpperCase());
}

function formatTo(
  r: ChatRequest,
  tools: readonly Json[] | undefined,
  e: GeminiEncoding,
): JsonObject {
  const { format } = r.output;
  if (format === undefined || format.type === "text") return {};
  const own = sourceOf<JsonObject>(format);
  if (own) return own;
  if (tools && !e.traits.combinesTools)
    fail("unsupported", `${e.of.model} does not support tools and JSON output in one request.`, {
      param: "response_format",
      code: "unsupported_parameter",
    });
  const json = { responseMimeType: "application/json" };
  if (format.type !== "schema" || !("schema" in format)) return json;
  if (asText(format.description)) e.of.reportLoss("response_format.description", "dropped");
  if (format.strict === false) e.of.reportLoss("response_format.strict", "approximated");
  if (e.traits.jsonSchema) return { ...json, responseJsonSchema: format.schema };
  const of = "response_format.schema";
  const lose = () => e.of.reportLoss(of, "approximated", "schema_simplified");
  return { ...json, responseSchema: toOpenApiSubset(format.schema, of, e.expansionBudget, lose) };
}

const TIERS: Readonly<Record<string, string | undefined>> = {
  auto: undefined,
  default: "standard",
  flex: "flex",
  priority: "priority",
  standard: "standard",
  standard_only: "standard",
};

function tierTo({ tier }: ChatRequest, e: GeminiEncoding): string | undefined {
  if (tier === undefined) return undefined;
  if (!Object.hasOwn(TIERS, tier)) e.of.reportLoss("service_tier", "dropped");
  return ownEntry(TIERS, tier);
}

/**
 * Returns the path of a model. The client chose the name, so the path must not lead to anything
 * except a model.
 */
export function modelPath(model: string): string {
  const steps = nameOf(model).split("/");
  if (steps.some((step) => step === "" || step === "." || step === ".."))
    fail("not_found", `Model ${model} not found.`, { param: "model", code: "model_not_found" });
  return steps.map((step) => encodeURIComponent(step)).join("/");
}

// Encodes the reasoning settings in the form that the model supports: a level or a token budget,
// never both.

/** Output tokens to reserve for the response, because reasoning shares its limit. */
const MIN_OUTPUT_BESIDE_THOUGHTS = 1024;

/**
 * Returns `thinkingConfig`, or undefined if the request does not mention reasoning. The reasoning
 * text is included whenever reasoning is requested. Without it, the stream is silent while the
 * model reasons, and clients may treat the connection as broken.
 */
function thinkingTo(r: ChatRequest, e: GeminiEncoding): JsonObject | undefined {
  const own = sourceOf<JsonObject>(r.reasoning);
  if (own) return omitUndefinedOrNothing(own);
  const { mode, effort, show } = r.reasoning;
  if (mode === "auto" && (show === undefined || show === "none")) return undefined;
  const off = mode === "off" || (mode === "effort" && effort === "none");
  if (e.traits.thinking === "none" || reasoningSupportOf(e.of.info).isSupported === false) {
    if (!off) e.of.reportLoss("reasoning", "dropped", "no_thinking");
    return undefined;
  }
  if (off) return switchedOff(e);
  const config = { includeThoughts: true };
  if (mode === "auto") return config;
  return e.traits.thinking === "level"
    ? { ...config, thinkingLevel: levelTo(r.reasoning, e).toUpperCase() }
    : { ...config, thinkingBudget: budgetTo(r, e) };
}

function switchedOff(e: GeminiEncoding): JsonObject {
  if (e.traits.thinking === "budget" && e.traits.canDisableThinking) return { thinkingBudget: 0 };
  if (e.traits.thinking === "level" && e.traits.levels.includes("minimal")) {
    e.of.reportLoss("reasoning", "approximated", "least_thinking");
    return { thinkingLevel: "MINIMAL" };
  }
  // Reasoning would be billed to a client that disabled it, so the request is rejected.
  return fail("unsupported", `Reasoning cannot be disabled for ${e.of.model}.`, {
    param: "reasoning",
    code: "thinking_required",
  });
}

function levelTo(reasoning: Reasoning, e: GeminiEncoding): string {
  const { levels } = e.traits;
  const requestedEffort =
    reasoning.effort ?? effortForBudget(reasoning.budget ?? MIN_OUTPUT_BESIDE_THOUGHTS);
  if (reasoning.effort === undefined)
    e.of.reportLoss("reasoning.budget", "approximated", "budget_as_level");
  const level = nearestEffort(requestedEffort, levels);
  if (reasoning.effort !== undefined && level !== requestedEffort)
    e.of.reportLoss("reasoning.effort", "approximated");
  return level;
}

function budgetTo(r: ChatRequest, e: GeminiEncoding): number {
  const { mode, effort = "medium", budget } = r.reasoning;
  const [least, most] = e.traits.budget;
  const fit = (tokens: number, cap: number) => Math.max(least, Math.min(tokens, cap));
  if (mode === "budget" && budget !== undefined) {
    const fits = fit(budget, most);
    if (fits !== budget) e.of.reportLoss("reasoning.budget", "approximated");
    return fits;
  }
  e.of.reportLoss("reasoning", "approximated", "effort_as_budget");
  const limit = r.output.maxTokens;
  return fit(
    ownEntry(EFFORT_BUDGETS, effort) ?? most,
    limit === undefined ? most : Math.min(most, limit - MIN_OUTPUT_BESIDE_THOUGHTS),
  );
}
