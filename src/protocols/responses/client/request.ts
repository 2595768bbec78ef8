// Client half: a request as a body, with what this wire cannot say refused or declared.
import { leaveStops } from "../../stops.ts";
import { fail } from "../../../model/error.ts";
import type {
  CallContext,
  Body,
  ChatRequest,
  Json,
  JsonObject,
  Opt,
} from "../../../plugin/index.ts";
import { returned } from "../../strangers.ts";
import { samplingFor, type Reasons } from "../../reasons.ts";
import { reasonsFor, type ResponsesDialect } from "../dialect.ts";
import { itemsTo, leadTo } from "./history.ts";
import { KNOWN_INSIDE } from "../known.ts";
import type { PartContext } from "../parts.ts";
import { LOGPROBS, OWN } from "../server/request.ts";
import { choiceTo, speaking, toolsTo } from "../tools.ts";
import { ENCRYPTED, mayReason, thinking } from "./thinking.ts";
import { list, object, present } from "../../json.ts";
import { ORIGIN, cameAs, digest } from "../words.ts";

const TINY = 16;

/** What counting tokens takes; anything more is an error there. */
const COUNTED = [
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

export function request(r: ChatRequest, of: CallContext, dialect: ResponsesDialect): Body {
  const own = object(r.ext[ORIGIN]);
  const native = own !== undefined;
  const quiet = (own && cameAs<JsonObject>(own)) ?? {};
  const chat = object(r.ext[CHAT]) ?? {};
  const losses = once(of);
  const reasons = reasonsFor(dialect, of.info, of.model);
  refuse(r);
  leaveStops(r.output.stop ?? [], of);
  const sampling = samplingFor(r, of);
  forgo({ ...r, sampling }, losses, native);
  const turns = itemsTo(r.turns, speaking(r.tools), losses);
  const lead = leadTo(r.instructions, turns.length === 0, losses);
  const input = [...lead.items, ...turns];
  if (input.length === 0)
    fail("unsupported", "There is nothing in this request that the model could answer.", {
      param: "input",
      code: "empty_input",
    });
  const last = r.turns.at(-1);
  if (last?.role === "assistant" && cameAs(last) === undefined)
    losses.lose("messages", "approximated", "prefill_ignored");
  const tools = toolsTo(r, losses, own);
  const said: JsonObject = present({
    ...Object.fromEntries(OWN.map((field) => [field, own?.[field] ?? chat[field]])),
    model: of.model,
    input,
    instructions: lead.instructions,
    stream: of.stream,
    // Absent, `prepare` decides: here it would look as if the client had said so.
    store: dialect.store === false ? undefined : r.state.store,
    max_output_tokens: bounded(r, native, losses),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_logprobs: sampling.logprobs || undefined,
    ...(native && {
      presence_penalty: sampling.presence,
      frequency_penalty: sampling.frequency,
    }),
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: choiceTo(r) ?? own?.["tool_choice"],
    parallel_tool_calls: r.parallel,
    text: wording(r, object(own?.["text"])),
    reasoning: thinking(r, reasons, of, quiet["summary"], object(own?.["reasoning"]), losses),
    include: included(r, reasons, quiet["include"]),
    stream_options: quiet["stream_options"],
    client_metadata: quiet["client_metadata"],
    service_tier: r.tier === "standard_only" ? "default" : r.tier,
    prompt_cache_key: r.cache?.key,
    prompt_cache_retention: r.cache?.auto ? undefined : r.cache?.retention,
    metadata: r.metadata,
    ...identified(r, own?.["user"], chat["safety_identifier"]),
    previous_response_id: r.state.previousId,
    conversation: r.state.conversation,
    background: r.state.background || undefined,
  });
  const body = returned(said, own, KNOWN_INSIDE, losses.lose);
  return of.op === "count" ? only(body, COUNTED) : body;
}

const only = (body: JsonObject, fields: readonly string[]): JsonObject =>
  Object.fromEntries(fields.flatMap((f) => (body[f] === undefined ? [] : [[f, body[f]]])));

/** Thirty marked blocks are one loss. */
function once(of: CallContext): PartContext {
  const said = new Set<string>();
  return {
    marks: of.info.can?.["cache.marks"] === true,
    lose(field, how, code) {
      if (said.has(field)) return;
      said.add(field);
      of.lose(field, how, code);
    },
  };
}

/** What would change the answer if it were left out. */
function refuse({ sampling, output }: ChatRequest): void {
  const no = (param: string, message: string) =>
    fail("unsupported", message, { param, code: "unsupported_parameter" });
  if ((sampling.n ?? 1) > 1) no("n", "This model's protocol gives one answer; n must be 1.");
  if (output.modalities?.some((m) => m !== "text"))
    no("modalities", "This model's protocol answers in text only.");
}

/** What only tunes it. */
function forgo({ sampling, cache, ext }: ChatRequest, of: PartContext, native: boolean): void {
  const lost = {
    // Caching wherever it fits: here the upstream decides.
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
    if (value !== undefined) of.lose(field, "dropped");
  // What only another protocol knows; chat is the same vendor's, and shares some of its words.
  for (const protocol in ext)
    if (protocol !== ORIGIN)
      for (const field in object(ext[protocol]))
        if (protocol !== CHAT || !SHARED.has(field)) of.lose(field, "dropped");
}

const CHAT = "chat-completions";
const SHARED = new Set([...OWN, "safety_identifier"]);

function bounded({ output }: ChatRequest, native: boolean, of: PartContext): number | undefined {
  const { maxTokens } = output;
  if (maxTokens === undefined || native || maxTokens >= TINY) return maxTokens;
  of.lose("max_tokens", "approximated", "max_tokens_raised");
  return TINY;
}

function wording({ output }: ChatRequest, own: JsonObject | undefined): JsonObject | undefined {
  const { format, verbosity } = output;
  const said = present({ verbosity, format: format && formatTo(format), ...own });
  return Object.keys(said).length > 0 ? said : undefined;
}

function formatTo(format: NonNullable<ChatRequest["output"]["format"]>): JsonObject {
  if (format.type !== "schema") return { type: format.type === "json" ? "json_object" : "text" };
  const { schema, strict, description } = format;
  const name = format.name ?? "response";
  return present({ type: "json_schema", name, description, schema, strict });
}

function included(request: ChatRequest, reasons: Reasons, own: Opt<Json>): Json[] | undefined {
  const asked = new Set(list(own));
  const { mode } = request.reasoning;
  if (mayReason(reasons, mode === "effort" || mode === "budget") && !request.state.store)
    asked.add(ENCRYPTED);
  if (request.sampling.logprobs !== undefined) asked.add(LOGPROBS);
  return asked.size > 0 ? [...asked] : undefined;
}

/** At most 64 characters; a digest of a longer one still tells users apart. */
function identified(
  { user, ext }: ChatRequest,
  other: Opt<Json>,
  identifier: Opt<Json>,
): JsonObject {
  if (identifier !== undefined) return { user, safety_identifier: identifier };
  const long = user !== undefined && user.length > 64 && ext[ORIGIN] === undefined;
  return { user: other, safety_identifier: long ? digest(user) : user };
}
