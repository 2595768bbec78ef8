// A request in the words of Converse. The model stands in the address, and whether it is a stream too.
import {
  fail,
  type Body,
  type CallContext,
  type ChatRequest,
  type JsonObject,
} from "tollgate/plugin";
import { samplingFor } from "tollgate/protocols/codec";
import { some } from "../json.ts";
import { blocksTo, systemTo } from "./blocks.ts";
import { effortTo } from "./thinking.ts";
import { toolConfigTo } from "./tools.ts";
import { ID, unsayable } from "./words.ts";

export function request(asked: ChatRequest, of: CallContext): Body {
  const r = { ...asked, sampling: samplingFor(asked, of) };
  refuse(r);
  foreign(r, of);
  const format = formatTo(r, of);
  const body = {
    messages: messagesTo(r, of),
    system: absent([...systemTo(r.instructions, of), ...format.words]),
    inferenceConfig: some({
      maxTokens: maxTokensTo(r, of),
      temperature: temperatureTo(r, of),
      topP: r.sampling.topP,
      stopSequences: absent((r.output.stop ?? []).filter((stop) => stop !== "")),
    }),
    toolConfig: toolConfigTo(r, of),
    outputConfig: some({ ...format.config, ...effortTo(r, of) }),
    serviceTier: tierTo(r, of),
  };
  if (of.op === "count") {
    const { messages, system, toolConfig } = body;
    return { input: { converse: some({ messages, system, toolConfig })! } };
  }
  return some(body)!;
}

const absent = <T>(list: readonly T[]): readonly T[] | undefined =>
  list.length > 0 ? list : undefined;

/** What changes the answer's very shape. */
function refuse(r: ChatRequest): void {
  if ((r.sampling.n ?? 1) > 1) unsayable("n > 1", "n", "unsupported_value");
  if (r.sampling.logprobs !== undefined) unsayable("logprobs", "logprobs", "unsupported_parameter");
  for (const modality of r.output.modalities ?? [])
    if (modality !== "text")
      unsayable(`The modality ${modality}`, "modalities", "unsupported_value");
  const { previousId, conversation, background } = r.state;
  if (previousId !== undefined)
    unsayable("previous_response_id", "previous_response_id", "unsupported_parameter");
  if (conversation !== undefined)
    unsayable("conversation", "conversation", "unsupported_parameter");
  if (background) unsayable("background", "background", "unsupported_parameter");
}

const isEmpty = (of: object | undefined): boolean => !of || Object.keys(of).length === 0;

/** Tuning that this wire has no word for, and what only another protocol knows. */
function foreign(r: ChatRequest, of: CallContext): void {
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
  for (const field in lost) if (lost[field] !== undefined) of.lose(field, "dropped");
  for (const [protocol, ext] of Object.entries(r.ext))
    if (protocol !== ID && typeof ext === "object" && ext !== null)
      for (const field in ext) of.lose(field, "dropped", "foreign_field");
}

interface Said {
  readonly role: "user" | "assistant";
  readonly content: JsonObject[];
}

/** Turns of one side that follow each other are one message here. */
function messagesTo(r: ChatRequest, of: CallContext): readonly JsonObject[] {
  const messages: Said[] = [];
  const say = (role: Said["role"], content: JsonObject[]) => {
    if (content.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  };
  for (const [i, turn] of r.turns.entries()) {
    const at = `messages.${i}`;
    if (turn.name !== undefined) of.lose("messages.name", "dropped");
    if (turn.role === "system" || turn.role === "developer") {
      of.lose("messages.role", "approximated", "system_moved");
      say("user", systemTo(turn.blocks, of));
    } else {
      const role = turn.role === "assistant" ? "assistant" : "user";
      say(role, blocksTo(turn.blocks, role, at, of));
    }
  }
  if (messages.length === 0)
    fail("unsupported", "The conversation has nothing in it that Converse can take.", {
      param: "messages",
      code: "empty_message",
    });
  return messages.map(({ role, content }) => ({ role, content }));
}

function maxTokensTo({ output }: ChatRequest, of: CallContext): number | undefined {
  const most = of.info.limits?.output;
  if (output.maxTokens === undefined || most === undefined || output.maxTokens <= most)
    return output.maxTokens;
  of.lose("max_tokens", "approximated", "max_tokens_clamped");
  return most;
}

function temperatureTo({ sampling }: ChatRequest, of: CallContext): number | undefined {
  const { temperature } = sampling;
  if (temperature === undefined || temperature <= 1) return temperature;
  of.lose("temperature", "approximated", "temperature_clamped");
  return 1;
}

function formatTo(
  { output: { format } }: ChatRequest,
  of: CallContext,
): { config?: JsonObject; words: readonly JsonObject[] } {
  if (format?.type === "json") {
    of.lose("response_format", "approximated", "json_by_instruction");
    const text =
      "Answer with one valid JSON object and nothing else: no words around it, no code fence.";
    return { words: [{ text }] };
  }
  if (format?.type !== "schema" || !("schema" in format)) return { words: [] };
  if (format.strict === false) of.lose("response_format.strict", "approximated");
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
  of.lose("service_tier", "dropped");
  return undefined;
}
