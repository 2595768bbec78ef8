// The response object. All 31 keys are always present, because the clients' schemas require them.
// Most of the keys repeat the client's own request.
import type { ResponseContext, Json, JsonObject, Opt, Usage } from "../../../plugin/index.ts";
import { withCost } from "../../cost-in-usage.ts";
import { usageTo } from "../usage.ts";
import { asBoolean, asList, asNumber, asObject, asText } from "../../json-values.ts";

export interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly JsonObject[];
  usage?: Opt<Usage>;
  reason?: Opt<string>;
  error?: Opt<{ code: string; message: string }>;
  tier?: Opt<string>;
}

export interface ResponseObject {
  toJson(now: ResponseState): JsonObject;
  /** Returns the object as JSON text. The part that never changes is encoded once. */
  toText(now: ResponseState): string;
}

/** Whether the response has ended, so that its cost is known. */
const isDone = ({ status }: ResponseState): boolean =>
  status === "completed" || status === "incomplete";

const alphanumericOnly = (id: string): string => id.replace(/[^A-Za-z0-9]/g, "");

/**
 * Returns the response ID. IDs are derived from the exchange's ID, so they are unique within a
 * conversation without randomness or stored state.
 */
const responseId = (to: ResponseContext): string => `resp_${alphanumericOnly(to.id)}`;
export const itemId = (to: ResponseContext, prefix: string, index: number): string =>
  `${prefix}_${alphanumericOnly(to.id)}${index.toString(36).padStart(4, "0")}`;

export function responseObject(to: ResponseContext): ResponseObject {
  const body = to.body as JsonObject;
  const echoed = echoRequest(body);
  const now = (s: ResponseState): JsonObject => ({
    id: responseId(to),
    object: "response",
    created_at: to.created,
    // A codec has no clock. The second in which the response began is the closest known time.
    completed_at: s.status === "completed" ? to.created : null,
    status: s.status,
    model: to.model,
    error: s.error ?? null,
    incomplete_details: s.reason === undefined ? null : { reason: s.reason },
    output: s.output,
    usage: isDone(s) ? withCost(usageTo(s.usage), to) : usageTo(s.usage),
    service_tier: tierOf(s.tier, body),
    ...(s.usage?.searches !== undefined && {
      tool_usage: { web_search: { num_requests: s.usage.searches } },
    }),
  });
  let tail: string | undefined;
  return {
    toJson: (s) => ({ ...now(s), ...echoed }),
    toText: (s) =>
      `${JSON.stringify(now(s)).slice(0, -1)},${(tail ??= JSON.stringify(echoed).slice(1))}`,
  };
}

const TIERS = new Set(["default", "flex", "scale", "priority", "fast", "ultrafast"]);

/**
 * Returns the service tier. Clients only accept these names, so a provider's own tier names are
 * used only for billing.
 */
function tierOf(served: Opt<string>, body: JsonObject): string {
  const requested = asText(body["service_tier"]) ?? "default";
  return [served ?? "", requested].find((tier) => TIERS.has(tier)) ?? "default";
}

function echoRequest(body: JsonObject): JsonObject {
  const reasoning = asObject(body["reasoning"]);
  return {
    previous_response_id: null,
    instructions: asText(body["instructions"]) ?? null,
    tools: asList(body["tools"]).map(toolEcho),
    tool_choice: choiceEcho(body["tool_choice"]),
    parallel_tool_calls: asBoolean(body["parallel_tool_calls"]) ?? true,
    truncation: asText(body["truncation"]) ?? "disabled",
    text: textEcho(asObject(body["text"])),
    reasoning: {
      effort: asText(reasoning?.["effort"]) ?? null,
      summary: asText(reasoning?.["summary"]) ?? null,
    },
    temperature: asNumber(body["temperature"]) ?? 1,
    top_p: asNumber(body["top_p"]) ?? 1,
    presence_penalty: asNumber(body["presence_penalty"]) ?? 0,
    frequency_penalty: asNumber(body["frequency_penalty"]) ?? 0,
    top_logprobs: asNumber(body["top_logprobs"]) ?? 0,
    max_output_tokens: asNumber(body["max_output_tokens"]) ?? null,
    max_tool_calls: asNumber(body["max_tool_calls"]) ?? null,
    // In translated mode nothing is stored, whatever the client requested.
    store: false,
    background: false,
    metadata: asObject(body["metadata"]) ?? {},
    safety_identifier: asText(body["safety_identifier"]) ?? null,
    prompt_cache_key: asText(body["prompt_cache_key"]) ?? null,
    ...(asText(body["user"]) !== undefined && { user: body["user"] }),
  };
}

/**
 * Repeats a tool declaration. Keys that schemas require are present or null. Credentials for other
 * services are removed.
 */
function toolEcho(raw: Json): Json {
  const tool = asObject(raw);
  if (!tool) return raw;
  if (tool["type"] === "function")
    return { ...tool, description: null, parameters: null, strict: null, ...known(tool) };
  const { authorization: _, headers: __, ...rest } = tool;
  return rest;
}

const known = (tool: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(tool).filter(([, v]) => v !== undefined));

/**
 * Repeats the tool choice. `mode` of the allowed tools is optional in a request and required in a
 * response.
 */
function choiceEcho(requested: Json | undefined): Json {
  const choice = asObject(requested);
  return choice?.["type"] === "allowed_tools" ? { mode: "auto", ...choice } : (requested ?? "auto");
}

/**
 * Repeats the text options. `strict` and `verbosity` can be null in a request but not in a
 * response.
 */
function textEcho(options: JsonObject | undefined): JsonObject {
  const format = asObject(options?.["format"]) ?? { type: "text" };
  const { verbosity, ...rest } = options ?? {};
  return {
    ...rest,
    ...(asText(verbosity) !== undefined && { verbosity }),
    format:
      format["type"] === "json_schema"
        ? { description: null, ...known(format), strict: asBoolean(format["strict"]) ?? false }
        : format,
  };
}

/** Creates the response to a request with `background: true`. `model`: the name that it has. */
export const createQueuedResponse = (
  body: JsonObject,
  { id, created, model }: { readonly id: string; readonly created: number; readonly model: string },
): JsonObject => ({
  id,
  object: "response",
  created_at: created,
  completed_at: null,
  status: "queued",
  model,
  error: null,
  incomplete_details: null,
  output: [],
  usage: null,
  ...echoRequest(body),
  store: true,
  background: true,
});
