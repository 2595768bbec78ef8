// Client half: encodes a request. Content that this protocol cannot express is rejected or reported
// as a translation warning.
import { delegateStopSequences } from "../../chat-parameters.ts";
import { fail } from "../../../model/error.ts";
import type {
  CallContext,
  Body,
  ChatRequest,
  Json,
  JsonObject,
  Opt,
} from "../../../plugin/index.ts";
import { restoreUnknownFields } from "../../unknown-fields.ts";
import { supportedSampling, type ReasoningSupport } from "../../reasoning-support.ts";
import {
  reasoningSupportFor,
  type ResponsesDialect,
  ORIGIN,
  sourceOf,
  digestText,
} from "../constants.ts";
import { itemsTo, toInstructions } from "./input-items.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import type { PartContext } from "../parts.ts";
import { LOGPROBS, PROTOCOL_FIELDS } from "../server/request.ts";
import { choiceTo, createCallNamer, toolsTo } from "../tools.ts";
import { ENCRYPTED, mayReason, reasoningTo } from "./thinking.ts";
import { asList, asObject, omitUndefined } from "../../json-values.ts";

const MIN_OUTPUT_TOKENS = 16;

/** Fields that a token count request may contain. The API rejects any other field. */
const TOKEN_COUNT_FIELDS = [
  "model",
  "input",
  "instructions",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "truncation",
] as const;

export function encodeRequest(r: ChatRequest, of: CallContext, dialect: ResponsesDialect): Body {
  const own = asObject(r.ext[ORIGIN]);
  const native = own !== undefined;
  const quiet = (own && sourceOf<JsonObject>(own)) ?? {};
  const chat = asObject(r.ext[CHAT]) ?? {};
  const losses = reportOnce(of);
  const reasons = reasoningSupportFor(dialect, of.info, of.model);
  rejectUnsupported(r);
  delegateStopSequences(r.output.stop ?? [], of);
  const sampling = supportedSampling(r, of);
  reportDroppedTuning({ ...r, sampling }, losses, native);
  const turns = itemsTo(r.turns, createCallNamer(r.tools), losses);
  const lead = toInstructions(r.instructions, turns.length === 0, losses);
  const input = [...lead.items, ...turns];
  if (input.length === 0)
    fail("unsupported", "The request has no content that can be sent to the model.", {
      param: "input",
      code: "empty_input",
    });
  const last = r.turns.at(-1);
  if (last?.role === "assistant" && sourceOf(last) === undefined)
    losses.reportLoss("messages", "approximated", "prefill_ignored");
  const tools = toolsTo(r, losses, own);
  const requestBody: JsonObject = omitUndefined({
    ...Object.fromEntries(PROTOCOL_FIELDS.map((field) => [field, own?.[field] ?? chat[field]])),
    model: of.model,
    input,
    instructions: lead.instructions,
    stream: of.stream,
    // If unset, `prepare` sets it. A value set here would look as if the client had requested it.
    store: dialect.store === false ? undefined : r.state.store,
    max_output_tokens: toMaxOutputTokens(r, native, losses),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_logprobs: sampling.logprobs || undefined,
    ...(native && {
      presence_penalty: sampling.presence,
      frequency_penalty: sampling.frequency,
    }),
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: choiceTo(r) ?? own?.["tool_choice"],
    parallel_tool_calls: r.parallelToolCalls,
    text: toTextOptions(r, asObject(own?.["text"])),
    reasoning: reasoningTo(r, reasons, of, quiet["summary"], asObject(own?.["reasoning"]), losses),
    include: toInclude(r, reasons, quiet["include"]),
    stream_options: quiet["stream_options"],
    client_metadata: quiet["client_metadata"],
    service_tier: r.tier === "standard_only" ? "default" : r.tier,
    prompt_cache_key: r.cache?.key,
    prompt_cache_retention: r.cache?.auto ? undefined : r.cache?.retention,
    metadata: r.metadata,
    ...toUserId(r, own?.["user"], chat["safety_identifier"]),
    previous_response_id: r.state.previousId,
    conversation: r.state.conversation,
    background: r.state.background || undefined,
  });
  const body = restoreUnknownFields(requestBody, own, KNOWN_FIELDS, losses.reportLoss);
  return of.actionType === "count" ? only(body, TOKEN_COUNT_FIELDS) : body;
}

const only = (body: JsonObject, fields: readonly string[]): JsonObject =>
  Object.fromEntries(fields.flatMap((f) => (body[f] === undefined ? [] : [[f, body[f]]])));

/** Reports each field once, so that thirty marked blocks cause one warning. */
function reportOnce(of: CallContext): PartContext {
  const reported = new Set<string>();
  return {
    acceptsCacheMarks: of.info.can?.["cache.marks"] === true,
    reportLoss(field, how, code) {
      if (reported.has(field)) return;
      reported.add(field);
      of.reportLoss(field, how, code);
    },
  };
}

/** Rejects options whose omission would change the response. */
function rejectUnsupported({ sampling, output }: ChatRequest): void {
  const no = (param: string, message: string) =>
    fail("unsupported", message, { param, code: "unsupported_parameter" });
  if ((sampling.n ?? 1) > 1) no("n", "This model's protocol returns one response; n must be 1.");
  if (output.modalities?.some((m) => m !== "text"))
    no("modalities", "This model's protocol supports text output only.");
}

/** Reports options that only tune the response and are dropped. */
function reportDroppedTuning(
  { sampling, cache, ext }: ChatRequest,
  of: PartContext,
  native: boolean,
): void {
  const lost = {
    // Automatic caching is decided by the provider in this protocol.
    cache_control: cache?.auto || undefined,
    top_k: sampling.topK,
    seed: sampling.seed,
    logit_bias: sampling.logitBias,
    ...(!native && {
      presence_penalty: sampling.presence,
      frequency_penalty: sampling.frequency,
    }),
  };
  for (const [field, value] of Object.entries(lost))
    if (value !== undefined) of.reportLoss(field, "dropped");
  // Fields that only another protocol has. Chat completions is from the same vendor and shares some
  // fields.
  for (const protocol in ext)
    if (protocol !== ORIGIN)
      for (const field in asObject(ext[protocol]))
        if (protocol !== CHAT || !SHARED.has(field)) of.reportLoss(field, "dropped");
}

const CHAT = "chat-completions";
const SHARED = new Set([...PROTOCOL_FIELDS, "safety_identifier"]);

function toMaxOutputTokens(
  { output }: ChatRequest,
  native: boolean,
  of: PartContext,
): number | undefined {
  const { maxTokens } = output;
  if (maxTokens === undefined || native || maxTokens >= MIN_OUTPUT_TOKENS) return maxTokens;
  of.reportLoss("max_tokens", "approximated", "max_tokens_raised");
  return MIN_OUTPUT_TOKENS;
}

function toTextOptions(
  { output }: ChatRequest,
  own: JsonObject | undefined,
): JsonObject | undefined {
  const { format, verbosity } = output;
  const options = omitUndefined({ verbosity, format: format && formatTo(format), ...own });
  return Object.keys(options).length > 0 ? options : undefined;
}

function formatTo(format: NonNullable<ChatRequest["output"]["format"]>): JsonObject {
  if (format.type !== "schema") return { type: format.type === "json" ? "json_object" : "text" };
  const { schema, strict, description } = format;
  const name = format.name ?? "response";
  return omitUndefined({ type: "json_schema", name, description, schema, strict });
}

function toInclude(
  request: ChatRequest,
  reasons: ReasoningSupport,
  own: Opt<Json>,
): Json[] | undefined {
  const include = new Set(asList(own));
  const { mode } = request.reasoning;
  if (mayReason(reasons, mode === "effort" || mode === "budget") && !request.state.store)
    include.add(ENCRYPTED);
  if (request.sampling.logprobs !== undefined) include.add(LOGPROBS);
  return include.size > 0 ? [...include] : undefined;
}

/**
 * Returns the user identifier, which has at most 64 characters. A longer ID is replaced by its
 * digest, which still distinguishes users.
 */
function toUserId({ user, ext }: ChatRequest, other: Opt<Json>, identifier: Opt<Json>): JsonObject {
  if (identifier !== undefined) return { user, safety_identifier: identifier };
  const long = user !== undefined && user.length > 64 && ext[ORIGIN] === undefined;
  return { user: other, safety_identifier: long ? digestText(user) : user };
}
