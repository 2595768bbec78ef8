// The response object: 31 keys, all of them always there, because clients' schemas say so. Most of it is the client's own
// request said back.
import type { AnswerContext, Json, JsonObject, Opt, Usage } from "../../../plugin/index.ts";
import { usageTo } from "../usage.ts";
import { flag, list, number, object, text } from "../../json.ts";

export interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly JsonObject[];
  usage?: Opt<Usage>;
  reason?: Opt<string>;
  error?: Opt<{ code: string; message: string }>;
  tier?: Opt<string>;
}

export interface ResponseObject {
  whole(now: ResponseState): JsonObject;
  /** The same, as text: what never changes is written once. */
  written(now: ResponseState): string;
}

const plain = (id: string): string => id.replace(/[^A-Za-z0-9]/g, "");

/** Ids are made of the exchange's own, so that they are unique over a conversation without chance or memory. */
export const responseId = (to: AnswerContext): string => `resp_${plain(to.id)}`;
export const itemId = (to: AnswerContext, prefix: string, index: number): string =>
  `${prefix}_${plain(to.id)}${index.toString(36).padStart(4, "0")}`;

export function responseObject(to: AnswerContext): ResponseObject {
  const body = to.body as JsonObject;
  const said = echo(body);
  const now = (s: ResponseState): JsonObject => ({
    id: responseId(to),
    object: "response",
    created_at: to.created,
    // A codec has no clock: the second in which the answer began is the nearest it knows.
    completed_at: s.status === "completed" ? to.created : null,
    status: s.status,
    model: to.model,
    error: s.error ?? null,
    incomplete_details: s.reason === undefined ? null : { reason: s.reason },
    output: s.output,
    usage: usageTo(s.usage),
    service_tier: tierOf(s.tier, body),
    ...(s.usage?.searches !== undefined && {
      tool_usage: { web_search: { num_requests: s.usage.searches } },
    }),
  });
  let tail: string | undefined;
  return {
    whole: (s) => ({ ...now(s), ...said }),
    written: (s) =>
      `${JSON.stringify(now(s)).slice(0, -1)},${(tail ??= JSON.stringify(said).slice(1))}`,
  };
}

const TIERS = new Set(["default", "flex", "scale", "priority", "fast", "ultrafast"]);

/** Clients read one of these words; what an upstream calls its own tiers stays with the bill. */
function tierOf(served: Opt<string>, body: JsonObject): string {
  const asked = text(body["service_tier"]) ?? "default";
  return [served ?? "", asked].find((tier) => TIERS.has(tier)) ?? "default";
}

function echo(body: JsonObject): JsonObject {
  const reasoning = object(body["reasoning"]);
  return {
    previous_response_id: null,
    instructions: text(body["instructions"]) ?? null,
    tools: list(body["tools"]).map(toolEcho),
    tool_choice: choiceEcho(body["tool_choice"]),
    parallel_tool_calls: flag(body["parallel_tool_calls"]) ?? true,
    truncation: text(body["truncation"]) ?? "disabled",
    text: textEcho(object(body["text"])),
    reasoning: {
      effort: text(reasoning?.["effort"]) ?? null,
      summary: text(reasoning?.["summary"]) ?? null,
    },
    temperature: number(body["temperature"]) ?? 1,
    top_p: number(body["top_p"]) ?? 1,
    presence_penalty: number(body["presence_penalty"]) ?? 0,
    frequency_penalty: number(body["frequency_penalty"]) ?? 0,
    top_logprobs: number(body["top_logprobs"]) ?? 0,
    max_output_tokens: number(body["max_output_tokens"]) ?? null,
    max_tool_calls: number(body["max_tool_calls"]) ?? null,
    // On the translated lane nothing is kept, whatever was asked.
    store: false,
    background: false,
    metadata: object(body["metadata"]) ?? {},
    safety_identifier: text(body["safety_identifier"]) ?? null,
    prompt_cache_key: text(body["prompt_cache_key"]) ?? null,
    ...(text(body["user"]) !== undefined && { user: body["user"] }),
  };
}

/** What a schema wants is there or null; what opens doors elsewhere is not said back. */
function toolEcho(raw: Json): Json {
  const tool = object(raw);
  if (!tool) return raw;
  if (tool["type"] === "function")
    return { ...tool, description: null, parameters: null, strict: null, ...known(tool) };
  const { authorization: _, headers: __, ...rest } = tool;
  return rest;
}

const known = (tool: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(tool).filter(([, v]) => v !== undefined));

/** A request may leave the mode of its allowed tools out, a response may not. */
function choiceEcho(asked: Json | undefined): Json {
  const choice = object(asked);
  return choice?.["type"] === "allowed_tools" ? { mode: "auto", ...choice } : (asked ?? "auto");
}

/** Of these a request may say null where a response may not: whether it is strict, how much it shall say. */
function textEcho(asked: JsonObject | undefined): JsonObject {
  const format = object(asked?.["format"]) ?? { type: "text" };
  const { verbosity, ...rest } = asked ?? {};
  return {
    ...rest,
    ...(text(verbosity) !== undefined && { verbosity }),
    format:
      format["type"] === "json_schema"
        ? { description: null, ...known(format), strict: flag(format["strict"]) ?? false }
        : format,
  };
}
