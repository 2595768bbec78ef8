// Encodes a request for Converse. The model and whether to stream are part of the URL.
import {
  fail,
  type Body,
  type CallContext,
  type ChatRequest,
  type JsonObject,
  type Json,
  type Tool,
} from "tollgate/plugin";
import {
  supportedSampling,
  effortForBudget,
  nearestEffort,
  declareTool,
  rejectTool,
} from "tollgate/protocols/codec";
import { some } from "../json.ts";
import { blocksTo, systemTo, cacheTo, nameTo } from "./blocks.ts";
import { ID, failUnsupported } from "./constants.ts";

export function encodeRequest(request: ChatRequest, of: CallContext): Body {
  const r = { ...request, sampling: supportedSampling(request, of) };
  rejectUnsupported(r);
  reportForeignFields(r, of);
  const format = formatTo(r, of);
  const body = {
    messages: messagesTo(r, of),
    system: nonEmptyOrUndefined([...systemTo(r.instructions, of), ...format.words]),
    inferenceConfig: some({
      maxTokens: maxTokensTo(r, of),
      temperature: temperatureTo(r, of),
      topP: r.sampling.topP,
      stopSequences: nonEmptyOrUndefined((r.output.stop ?? []).filter((stop) => stop !== "")),
    }),
    toolConfig: toolConfigTo(r, of),
    outputConfig: some({ ...format.config, ...effortTo(r, of) }),
    serviceTier: tierTo(r, of),
  };
  if (of.actionType === "count") {
    const { messages, system, toolConfig } = body;
    return { input: { converse: some({ messages, system, toolConfig })! } };
  }
  return some(body)!;
}

const nonEmptyOrUndefined = <T>(list: readonly T[]): readonly T[] | undefined =>
  list.length > 0 ? list : undefined;

/** Rejects options that would change the shape of the response. */
function rejectUnsupported(r: ChatRequest): void {
  if ((r.sampling.n ?? 1) > 1) failUnsupported("n > 1", "n", "unsupported_value");
  if (r.sampling.logprobs !== undefined)
    failUnsupported("logprobs", "logprobs", "unsupported_parameter");
  for (const modality of r.output.modalities ?? [])
    if (modality !== "text")
      failUnsupported(`The modality ${modality}`, "modalities", "unsupported_value");
  const { previousId, conversation, background } = r.state;
  if (previousId !== undefined)
    failUnsupported("previous_response_id", "previous_response_id", "unsupported_parameter");
  if (conversation !== undefined)
    failUnsupported("conversation", "conversation", "unsupported_parameter");
  if (background) failUnsupported("background", "background", "unsupported_parameter");
}

const isEmpty = (of: object | undefined): boolean => !of || Object.keys(of).length === 0;

/** Reports sampling parameters that Converse does not support and fields of other protocols. */
function reportForeignFields(r: ChatRequest, of: CallContext): void {
  const { presence, frequency, seed, topK, logitBias } = r.sampling;
  const lost: Record<string, unknown> = {
    presence_penalty: presence || undefined,
    frequency_penalty: frequency || undefined,
    seed,
    top_k: topK,
    logit_bias: isEmpty(logitBias) ? undefined : logitBias,
    verbosity: r.output.verbosity,
    prompt_cache_key: r.cache?.key,
    prompt_cache_retention: r.cache?.retention,
    cache_control: r.cache?.auto || undefined,
    metadata: isEmpty(r.metadata) ? undefined : r.metadata,
    user: r.user,
  };
  for (const field in lost) if (lost[field] !== undefined) of.reportLoss(field, "dropped");
  for (const [protocol, ext] of Object.entries(r.ext))
    if (protocol !== ID && typeof ext === "object" && ext !== null)
      for (const field in ext) of.reportLoss(field, "dropped", "foreign_field");
}

interface ConverseMessage {
  readonly role: "user" | "assistant";
  readonly content: JsonObject[];
}

/** Encodes turns as messages. Consecutive turns of one role become one message. */
function messagesTo(r: ChatRequest, of: CallContext): readonly JsonObject[] {
  const messages: ConverseMessage[] = [];
  const say = (role: ConverseMessage["role"], content: JsonObject[]) => {
    if (content.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  };
  for (const [i, turn] of r.turns.entries()) {
    const at = `messages.${i}`;
    if (turn.name !== undefined) of.reportLoss("messages.name", "dropped");
    if (turn.role === "system" || turn.role === "developer") {
      of.reportLoss("messages.role", "approximated", "system_moved");
      say("user", systemTo(turn.blocks, of));
    } else {
      const role = turn.role === "assistant" ? "assistant" : "user";
      say(role, blocksTo(turn.blocks, role, at, of));
    }
  }
  if (messages.length === 0)
    fail("unsupported", "The conversation has no content that Converse supports.", {
      param: "messages",
      code: "empty_message",
    });
  return messages.map(({ role, content }) => ({ role, content }));
}

function maxTokensTo({ output }: ChatRequest, of: CallContext): number | undefined {
  const most = of.info.limits?.output;
  if (output.maxTokens === undefined || most === undefined || output.maxTokens <= most)
    return output.maxTokens;
  of.reportLoss("max_tokens", "approximated", "max_tokens_clamped");
  return most;
}

function temperatureTo({ sampling }: ChatRequest, of: CallContext): number | undefined {
  const { temperature } = sampling;
  if (temperature === undefined || temperature <= 1) return temperature;
  of.reportLoss("temperature", "approximated", "temperature_clamped");
  return 1;
}

function formatTo(
  { output: { format } }: ChatRequest,
  of: CallContext,
): { config?: JsonObject; words: readonly JsonObject[] } {
  if (format?.type === "json") {
    of.reportLoss("response_format", "approximated", "json_by_instruction");
    const text =
      "Answer with one valid JSON object and nothing else: no words around it, no code fence.";
    return { words: [{ text }] };
  }
  if (format?.type !== "schema" || !("schema" in format)) return { words: [] };
  if (format.strict === false) of.reportLoss("response_format.strict", "approximated");
  const jsonSchema = some({
    schema: JSON.stringify(format.schema),
    name: format.name,
    description: format.description,
  })!;
  return {
    config: { textFormat: { type: "json_schema", structure: { jsonSchema } } },
    words: [],
  };
}

const TIERS = new Set(["default", "flex", "priority", "reserved"]);

function tierTo({ tier }: ChatRequest, of: CallContext): JsonObject | undefined {
  if (tier === undefined || tier === "auto") return undefined;
  if (tier === "standard" || tier === "standard_only") return { type: "default" };
  if (TIERS.has(tier)) return { type: tier };
  of.reportLoss("service_tier", "dropped");
  return undefined;
}

// Encodes the reasoning effort. Converse accepts an effort and no token budget. The model chooses
// the budget.

/** Efforts from low to high. */
const EFFORTS = ["low", "medium", "high", "xhigh", "max"];

function effortTo({ reasoning }: ChatRequest, of: CallContext): JsonObject {
  const { mode, effort, budget } = reasoning;
  if (mode === "auto") return {};
  if (of.info.can?.reasoning === false) {
    if (!isOff(reasoning)) of.reportLoss("reasoning", "dropped", "no_thinking");
    return {};
  }
  if (isOff(reasoning)) {
    of.reportLoss("reasoning", "approximated", "reasoning_left_on");
    return {};
  }
  if (mode === "budget") of.reportLoss("reasoning.budget", "approximated", "budget_as_effort");
  const requestedEffort = mode === "budget" ? effortForBudget(budget ?? 0) : (effort ?? "medium");
  const effortName = nearestEffort(requestedEffort, EFFORTS);
  if (mode === "effort" && effortName !== requestedEffort)
    of.reportLoss("reasoning.effort", "approximated");
  return { effort: effortName };
}

const isOff = ({ mode, effort }: ChatRequest["reasoning"]): boolean =>
  mode === "off" || (mode === "effort" && effort === "none");

// Encodes tools and the tool choice.

const NOTHING: JsonObject = { type: "object", properties: {} };

function toolConfigTo(r: ChatRequest, of: CallContext): JsonObject | undefined {
  const called = calledIn(r);
  const none = r.toolChoice === "none";
  // Converse rejects a conversation that contains tool calls but does not declare the called tools.
  const declared = none && called.size === 0 ? [] : toolsTo(r, of);
  if (none && declared.length > 0) of.reportLoss("tool_choice", "approximated", "tool_choice_none");
  if (r.parallelToolCalls === false && declared.length > 0)
    of.reportLoss("parallel_tool_calls", "dropped");
  if (declared.length > 0)
    return some({ tools: declared, toolChoice: none ? undefined : choiceTo(r) });
  if (called.size === 0) return undefined;
  of.reportLoss("tools", "approximated", "tools_from_history");
  return {
    tools: [...called].map((name) => ({ toolSpec: { name, inputSchema: { json: NOTHING } } })),
  };
}

const calledIn = ({ turns }: ChatRequest): Set<string> =>
  new Set(
    turns.flatMap(({ blocks }) =>
      blocks.flatMap((block) => (block.type === "call" ? [nameTo(block.name)] : [])),
    ),
  );

function toolsTo(r: ChatRequest, of: CallContext): Json[] {
  const choice = typeof r.toolChoice === "object" ? r.toolChoice : undefined;
  // A single required tool can be named. A choice among several tools is possible only if the other
  // tools are omitted.
  const among =
    choice && !(choice.must && choice.names.length === 1) ? new Set(choice.names) : undefined;
  if (among) of.reportLoss("tool_choice", "approximated", "tools_filtered");
  const declared = new Map<string, JsonObject>();
  const marked: Json[] = [];
  for (const tool of r.tools) {
    if (among && !among.has(tool.name)) continue;
    const spec = specOf(tool, of);
    const before = declared.size;
    declareTool(declared, String(spec["name"]), spec);
    if (declared.size > before) marked.push({ toolSpec: spec }, ...cacheTo(tool, of));
  }
  return marked;
}

function specOf(tool: Tool, of: CallContext): JsonObject {
  if (tool.type === "hosted") return rejectTool(tool);
  const name = nameTo(tool.name);
  const description = tool.description ? { description: tool.description } : {};
  if (tool.type === "custom") {
    of.reportLoss("tools.custom", "approximated", "custom_tool_wrapped");
    const input = { type: "string", description: "The input, as free text." };
    const json = { type: "object", properties: { input }, required: ["input"] };
    return { name, ...description, inputSchema: { json } };
  }
  const schema = tool.schema ?? NOTHING;
  return {
    name,
    ...description,
    inputSchema: { json: schema["type"] === undefined ? { type: "object", ...schema } : schema },
    ...(tool.strict && { strict: true }),
  };
}

function choiceTo({ toolChoice: choice }: ChatRequest): JsonObject | undefined {
  if (choice === undefined || choice === "none") return undefined;
  if (choice === "auto") return { auto: {} };
  if (choice === "required") return { any: {} };
  if (choice.must && choice.names.length === 1) return { tool: { name: nameTo(choice.names[0]!) } };
  return choice.must ? { any: {} } : { auto: {} };
}
