// Server half: a body as a request. Nothing is lost: what only this protocol says stands in `ext.responses` under its
// own name, what no codec knows in `rest`, and an untouched turn or tool remembers its own words.
import { put } from "../../../lib/member.ts";
import type { Body, ChatRequest, Json, JsonObject, Turn } from "../../../plugin/index.ts";
import { answerFormat } from "../../answer-format.ts";
import { multiplies } from "../../amounts.ts";
import { strangersIn, unknownIn } from "../../strangers.ts";
import { STORED, unsayable } from "../item-kind.ts";
import { conversation } from "./items.ts";
import { KNOWN_INSIDE } from "../known.ts";
import { choiceOf, toolsOf } from "../tools.ts";
import { flag, list, number, object, present, text } from "../../json.ts";
import { came, ORIGIN } from "../words.ts";

/** Fields that have a place in the common vocabulary. */
const COMMON = new Set([
  "model",
  "input",
  "instructions",
  "stream",
  "max_output_tokens",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "store",
  "previous_response_id",
  "conversation",
  "background",
  "temperature",
  "top_p",
  "top_logprobs",
  "presence_penalty",
  "frequency_penalty",
  "metadata",
  "user",
  "safety_identifier",
  "service_tier",
  "prompt_cache_key",
  "prompt_cache_retention",
]);

/** Fields that only this protocol knows: going elsewhere, they are lost. */
export const OWN: readonly string[] = [
  "max_tool_calls",
  "truncation",
  "prompt",
  "context_management",
  "moderation",
  "access_programs",
  "image",
  "prompt_cache_options",
];

/** The same, but no client misses them elsewhere: what they ask for is always given, or is between a client and its vendor. */
const QUIET = ["include", "stream_options", "client_metadata"];

const KNOWN = new Set([...COMMON, ...OWN, ...QUIET]);

/** All that this wire knows, in any dialect of it. */
export const knows = (field: string): boolean => KNOWN.has(field) || multiplies(field);

export function request(body: Body): ChatRequest {
  const fields = body as JsonObject;
  const say = conversation(fields["input"], text(fields["instructions"]));
  // A prompt that is kept upstream is the first thing the model reads.
  const stored = object(fields["prompt"]);
  const first: readonly Turn[] = stored
    ? [came({ role: "user", blocks: [unsayable({ ...stored, type: STORED })] }, [])]
    : [];
  const { choice, kept } = choiceOf(fields["tool_choice"]);
  const reasoning = object(fields["reasoning"]);
  const words = object(fields["text"]);
  const ext: Record<string, Json> = { ...strangersIn(fields, KNOWN_INSIDE) };
  for (const field of OWN)
    // Other wires never cut anything off.
    if (fields[field] != null && fields[field] !== "disabled") ext[field] = fields[field];
  const quiet: Record<string, Json> = { ...style(reasoning) };
  for (const field of QUIET) if (fields[field] != null) quiet[field] = fields[field];
  const { tools, bound } = toolsOf(fields);
  Object.assign(ext, bound);
  if (kept !== undefined) ext["tool_choice"] = kept;
  const format = answerFormat(words?.["format"], schemaIn);
  const odd = format === undefined && words?.["format"] != null ? { format: words["format"] } : {};
  const wording = { ...without(words, ["format", "verbosity"]), ...odd };
  if (Object.keys(wording).length > 0) ext["text"] = wording;
  const more = without(reasoning, ["effort", "summary"]);
  if (Object.keys(more).length > 0) ext["reasoning"] = more;
  const identifier = text(fields["safety_identifier"]);
  if (identifier !== undefined && text(fields["user"]) !== undefined) ext["user"] = fields["user"]!;
  return present({
    kind: "chat" as const,
    model: text(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    user: identifier ?? text(fields["user"]),
    ...say,
    turns: [...first, ...say.turns],
    tools,
    toolChoice: choice,
    parallel: flag(fields["parallel_tool_calls"]),
    output: present({
      maxTokens: number(fields["max_output_tokens"]),
      verbosity: text(words?.["verbosity"]),
      format,
    }),
    sampling: present({
      temperature: number(fields["temperature"]),
      topP: number(fields["top_p"]),
      presence: number(fields["presence_penalty"]),
      frequency: number(fields["frequency_penalty"]),
      logprobs: logprobsOf(fields),
    }),
    reasoning: reasoningOf(reasoning),
    cache: cacheOf(fields),
    tier: text(fields["service_tier"]),
    metadata: object(fields["metadata"]),
    state: present({
      store: flag(fields["store"]),
      previousId: text(fields["previous_response_id"]),
      conversation: text(fields["conversation"]) ?? text(object(fields["conversation"])?.["id"]),
      background: flag(fields["background"]),
    }),
    rest: unknownIn(fields, (field) => KNOWN.has(field)),
    // Always there, even empty: it says that the request came in this protocol.
    ext: { [ORIGIN]: came(ext, quiet) },
  });
}

function without(o: JsonObject | undefined, keys: readonly string[]): Record<string, Json> {
  const left: Record<string, Json> = {};
  for (const key in o) if (!keys.includes(key) && o[key] != null) put(left, key, o[key]);
  return left;
}

/** How a summary should read; that there should be one is common. */
function style(reasoning: JsonObject | undefined): { summary?: Json } {
  const summary = reasoning?.["summary"];
  return typeof summary === "string" ? { summary } : {};
}

function reasoningOf(reasoning: JsonObject | undefined): ChatRequest["reasoning"] {
  const effort = text(reasoning?.["effort"]);
  const summary = text(reasoning?.["summary"]) ?? text(reasoning?.["generate_summary"]);
  const show: ChatRequest["reasoning"]["show"] =
    summary === undefined ? undefined : summary === "none" ? "none" : "summary";
  if (effort === "none") return present({ mode: "off" as const, show });
  return effort === undefined
    ? present({ mode: "auto" as const, show })
    : present({ mode: "effort" as const, effort, show });
}

/** In the format itself. */
const schemaIn = (format: JsonObject): JsonObject => format;

export const LOGPROBS = "message.output_text.logprobs";

function logprobsOf(fields: JsonObject): number | undefined {
  const top = number(fields["top_logprobs"]);
  if (top) return top;
  return list(fields["include"]).includes(LOGPROBS) ? 0 : undefined;
}

function cacheOf(fields: JsonObject): ChatRequest["cache"] {
  const key = text(fields["prompt_cache_key"]);
  const retention = text(fields["prompt_cache_retention"]);
  return key === undefined && retention === undefined ? undefined : present({ key, retention });
}
