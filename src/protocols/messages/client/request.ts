import { createHash } from "node:crypto";
import { fail } from "../../../model/error.ts";
import type { ChatRequest, Block, Turn } from "../../../model/request.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import type { MessagesSettings } from "../dialect.ts";
import { restoreUnknownFields } from "../../unknown-fields.ts";
import { KNOWN_FIELDS } from "../known-fields.ts";
import { isObject } from "../../json-values.ts";
import { TOKEN_COUNT_FIELDS, ID, PROTOCOL_FIELDS, sourceOf } from "../constants.ts";
import { failUnsupported, type MessagesEncoding, blocksTo } from "./blocks.ts";
import { thinkingTo, choiceTo, toolsTo } from "./tools-thinking.ts";
import type { MessageTurns } from "../server/request.ts";

/**
 * Encodes a request in this protocol. Content that the protocol cannot express is rejected or
 * reported as a translation warning, never dropped silently.
 */
export function encodeRequest(r: ChatRequest, of: CallContext, settings: MessagesSettings): Body {
  const e: MessagesEncoding = { of, settings };
  const own = isObject(r.ext[ID]) ? r.ext[ID] : {};
  rejectUnsupported(r);
  reportForeignFields(r, e);
  const max = maxTokensTo(r, e);
  const { thinking, effort, maxTokens } = thinkingTo(r, max, e);
  const format = formatTo(r, e);
  const config: Record<string, Json | undefined> = {
    ...(isObject(own["output_config"]) && own["output_config"]),
    ...(effort !== undefined && { effort }),
    ...(format.schema && { format: { type: "json_schema", schema: format.schema } }),
  };
  const body: Record<string, Json | undefined> = {
    model: of.model,
    max_tokens: maxTokens,
    system: systemTo([...r.instructions, ...format.instructions], e),
    messages: messagesTo(r, e),
    tools: toolsTo(r, e),
    tool_choice: (own["tool_choice"] as Json | undefined) ?? choiceTo(r),
    stop_sequences: stopTo(r),
    stream: of.stream ? true : undefined,
    thinking,
    output_config: Object.keys(config).length > 0 ? config : undefined,
    metadata: metadataTo(r, own, e),
    service_tier: tierTo(r, e),
    cache_control: autoCacheTo(r, e),
    ...samplingTo(r, thinking, e),
  };
  for (const field of PROTOCOL_FIELDS) body[field] = own[field] as Json | undefined;
  resolveForcedTool(body, thinking, e);
  for (const field in body)
    if (body[field] === undefined || (of.actionType === "count" && !TOKEN_COUNT_FIELDS.has(field)))
      delete body[field];
  return restoreUnknownFields(body, own, KNOWN_FIELDS, (field, how) => of.reportLoss(field, how));
}

/** Rejects options that would change the form of the response. */
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

/**
 * Reports sampling options that this protocol lacks and fields that only another protocol has.
 * Bookkeeping fields are dropped without a warning.
 */
function reportForeignFields(r: ChatRequest, { of }: MessagesEncoding): void {
  const { presence, frequency, seed, logitBias } = r.sampling;
  const lost: Record<string, unknown> = {
    presence_penalty: presence || undefined,
    frequency_penalty: frequency || undefined,
    seed,
    logit_bias: logitBias && Object.keys(logitBias).length > 0 ? logitBias : undefined,
    verbosity: r.output.verbosity,
    prompt_cache_key: r.cache?.key,
    metadata: r.metadata && Object.keys(r.metadata).length > 0 ? r.metadata : undefined,
  };
  for (const field in lost) if (lost[field] !== undefined) of.reportLoss(field, "dropped");
  for (const protocol in r.ext) {
    const ext = r.ext[protocol];
    if (protocol === ID || !isObject(ext)) continue;
    for (const field in ext) if (ext[field] !== undefined) of.reportLoss(field, "dropped");
  }
}

/**
 * Returns `max_tokens`, which this protocol requires. If the client sets no limit, the model's own
 * limit is used.
 */
function maxTokensTo(r: ChatRequest, { of, settings }: MessagesEncoding): number {
  const cap = of.info.limits?.output;
  const requested = r.output.maxTokens;
  if (requested === undefined) {
    if (of.actionType !== "count")
      of.reportLoss("max_tokens", "approximated", "max_tokens_defaulted");
    return cap ?? settings.maxTokens;
  }
  if (cap !== undefined && requested > cap) {
    of.reportLoss("max_tokens", "approximated", "max_tokens_clamped");
    return cap;
  }
  return requested;
}

function stopTo(r: ChatRequest): Json | undefined {
  const stop = (r.output.stop ?? []).filter((s) => s !== "");
  return stop.length > 0 ? [...new Set(stop)] : undefined;
}

function samplingTo(
  r: ChatRequest,
  thinking: JsonObject | undefined,
  { of, settings }: MessagesEncoding,
): JsonObject {
  const { topP, topK } = r.sampling;
  let { temperature } = r.sampling;
  if (temperature !== undefined && temperature > 1) {
    of.reportLoss("temperature", "approximated", "temperature_clamped");
    temperature = 1;
  }
  const fields: Record<string, Json | undefined> = { temperature, top_p: topP, top_k: topK };
  const drop = (field: string, code: string) => {
    if (fields[field] === undefined) return;
    of.reportLoss(field, "dropped", code);
    fields[field] = undefined;
  };
  for (const field in fields)
    if (settings.sampling === "none" || of.info.rejectedFields?.includes(field))
      drop(field, "no_sampling");
  if (settings.sampling === "either" && fields["temperature"] !== undefined)
    drop("top_p", "temperature_or_top_p");
  // A thinking budget cannot be combined with a non-default temperature or with narrower sampling.
  if (thinking?.["type"] === "enabled") {
    if (fields["temperature"] !== 1) drop("temperature", "thinking");
    if ((topP ?? 1) < 0.95) drop("top_p", "thinking");
    drop("top_k", "thinking");
  }
  return fields;
}

/**
 * Resolves the conflict between a thinking budget and a forced tool. The forced tool takes
 * precedence, because the client named it explicitly.
 */
function resolveForcedTool(
  body: Record<string, Json | undefined>,
  thinking: JsonObject | undefined,
  { of }: MessagesEncoding,
): void {
  const choice = body["tool_choice"];
  const type = isObject(choice) ? choice["type"] : undefined;
  if (thinking?.["type"] !== "enabled" || (type !== "any" && type !== "tool")) return;
  of.reportLoss("reasoning", "approximated", "thinking_disabled_forced_tool");
  body["thinking"] = { type: "disabled" };
}

function formatTo(
  r: ChatRequest,
  { of }: MessagesEncoding,
): { schema?: JsonObject; instructions: ChatRequest["instructions"] } {
  const { format } = r.output;
  if (format?.type === "json") {
    of.reportLoss("response_format", "approximated", "json_by_instruction");
    return {
      instructions: [
        {
          type: "text",
          text: "Answer with one valid JSON object and nothing else: no words around it, no code fence.",
        },
      ],
    };
  }
  if (format?.type !== "schema" || !("schema" in format)) return { instructions: [] };
  if (of.info.can?.json_schema === false)
    fail("unsupported", `${of.model} does not support JSON schemas.`, {
      param: "response_format",
      code: "unsupported_parameter",
    });
  if (format.description !== undefined) of.reportLoss("response_format.description", "dropped");
  if (format.strict === false) of.reportLoss("response_format.strict", "approximated");
  return { schema: format.schema, instructions: [] };
}

const PERSONAL_USER_ID = /@|^\+?[\d ()-]{7,}$/;

/**
 * Returns `metadata.user_id`. The protocol requires an opaque ID, so a value that is too long or
 * looks like an email address or phone number is hashed.
 */
function metadataTo(
  r: ChatRequest,
  own: JsonObject,
  { of }: MessagesEncoding,
): JsonObject | undefined {
  const more = isObject(own["metadata"]) ? own["metadata"] : undefined;
  if (r.user === undefined) return more;
  let user = r.user;
  if (!(ID in r.ext) && (user.length > 256 || PERSONAL_USER_ID.test(user))) {
    of.reportLoss("user", "approximated", "user_hashed");
    user = createHash("sha256").update(user).digest("hex");
  }
  return { user_id: user, ...more };
}

function tierTo({ tier }: ChatRequest, { of }: MessagesEncoding): string | undefined {
  if (tier === undefined || tier === "auto") return tier;
  if (tier === "default" || tier === "standard") return "standard_only";
  of.reportLoss("service_tier", "dropped");
  return undefined;
}

function autoCacheTo({ cache }: ChatRequest, { of }: MessagesEncoding): JsonObject | undefined {
  if (!cache?.auto) {
    if (cache?.retention !== undefined) of.reportLoss("prompt_cache_retention", "dropped");
    return undefined;
  }
  return { type: "ephemeral", ...(cache.retention !== undefined && { ttl: cache.retention }) };
}

// Encodes the conversation in the form that this protocol requires. Roles alternate, and tool
// results come first in the turn after the calls.

interface Message {
  role: string;
  content: JsonObject[];
  /** The original message, if it has members other than role and content. */
  raw?: JsonObject;
}

function systemTo(blocks: readonly Block[], e: MessagesEncoding): Json | undefined {
  const out = wordsOnly(blocks, "system", e);
  if (out.length === 0) return undefined;
  const [first] = out;
  return out.length === 1 && Object.keys(first!).length === 2 ? first!["text"] : out;
}

function wordsOnly(blocks: readonly Block[], path: string, e: MessagesEncoding): JsonObject[] {
  for (const block of blocks)
    if (block.type !== "text" && block.type !== "opaque")
      failUnsupported(`A system message with ${block.type}`, path);
  return blocksTo(blocks, "user", path, e);
}

function messagesTo(r: ChatRequest, e: MessagesEncoding): Json[] {
  const messages: Message[] = [];
  let open: Message | undefined;
  let empty = false;
  /** Index of the first turn that no whole message has covered yet. */
  let next = 0;
  const say = (role: string, content: JsonObject[]): void => {
    if (content.length === 0) return;
    if (open?.role === role) for (const block of content) open.content.push(block);
    else messages.push((open = { role, content: [...content] }));
  };
  for (const [i, turn] of r.turns.entries()) {
    const path = `messages.${i}`;
    if (i < next) continue;
    const whole = wholeMessage(r.turns, i);
    if (whole) {
      messages.push({ role: "", content: [], raw: whole.message });
      open = undefined;
      empty = false;
      next = i + whole.turns.length;
      continue;
    }
    if (turn.name !== undefined) e.of.reportLoss("messages.name", "dropped");
    if (turn.role === "system" || turn.role === "developer") {
      system(turn, path, say, e);
      if (e.settings.systemMessages) open = undefined;
      continue;
    }
    const role = turn.role === "assistant" ? "assistant" : "user";
    const content = blocksTo(turn.blocks, role, path, e);
    empty = content.length === 0 && role === "user";
    say(role, content);
  }
  if (messages.length === 0 || empty)
    fail(
      "unsupported",
      "The last message has no content that can be sent to a messages endpoint.",
      {
        param: "messages",
        code: "empty_message",
      },
    );
  return messages.map((message) => message.raw ?? orderToolResults(message));
}

/** Returns the original message if it has unknown fields and its turns are unchanged. */
function wholeMessage(turns: readonly Turn[], at: number): MessageTurns | undefined {
  const whole = sourceOf<MessageTurns>(turns[at]!);
  return whole?.turns.every((turn, i) => turns[at + i] === turn) ? whole : undefined;
}

/**
 * Encodes a system turn inside the conversation. A model that does not support the role there
 * receives a user turn, in a wrapper that models are trained on.
 */
function system(
  turn: Turn,
  path: string,
  say: (role: string, content: JsonObject[]) => void,
  e: MessagesEncoding,
): void {
  const content = wordsOnly(turn.blocks, path, e);
  if (e.settings.systemMessages) return say("system", content);
  if (content.length > 0) e.of.reportLoss("messages.role", "approximated", "system_moved");
  say(
    "user",
    content.map((block) =>
      typeof block["text"] === "string"
        ? { ...block, text: `<system-reminder>\n${block["text"]}\n</system-reminder>` }
        : block,
    ),
  );
}

/**
 * Puts tool results first and keeps the last one for each call. This protocol rejects two results
 * for one call.
 */
function orderToolResults({ role, content }: Message): JsonObject {
  if (role !== "user") return { role, content };
  const results = new Map<unknown, JsonObject>();
  const others: JsonObject[] = [];
  for (const block of content)
    if (block["type"] === "tool_result") results.set(block["tool_use_id"], block);
    else others.push(block);
  return { role, content: [...results.values(), ...others] };
}
