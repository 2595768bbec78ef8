// What makes an answer dearer than its tokens say, wherever a body says it: how many answers, at which speed, by which
// other models, with how many runs of tools. Backends that imitate a protocol read more fields than it documents, so one
// list of names serves all wires: a name that a backend does not read costs nothing but a larger hold.
import type { Feature } from "../model/facts.ts";
import type { Opt } from "../model/values.ts";
import type { Survey } from "../plugin/protocol.ts";

type Fields = { readonly [field: string]: unknown };

/** Each of these has asked some backend for more than one answer, or picture, at once. */
const ANSWERS = [
  "n",
  "best_of",
  "num_return_sequences",
  "candidateCount",
  "candidate_count",
  "num_images",
  "num_outputs",
  "number_of_images",
  "numberOfImages",
  "sampleCount",
  "batch_size",
] as const;

/** Objects in which such a field may stand instead of at the top. */
const INSIDE = ["generationConfig", "generation_config", "parameters", "options"] as const;

/** Names of the bound of one answer. Where the documented one is set, a backend may read a larger one here. */
const BOUNDS = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "max_new_tokens",
  "max_tokens_to_sample",
  "maxOutputTokens",
] as const;

const TIERS = ["service_tier", "serviceTier"] as const;
/** Of two that are asked for, one that costs more than these is the one to pay for. */
const NO_DEARER: ReadonlySet<string> = new Set([
  "auto",
  "batch",
  "default",
  "flex",
  "standard",
  "standard_only",
]);

/** Beside `tools`, these have upstream search. */
const SEARCHES = [
  "web_search_options",
  "search_parameters",
  "web_search",
  "enable_search",
  "plugins",
  "google_search",
] as const;

/** By each of these, upstream reads what it kept of an earlier request. */
const KEPT = [
  "previous_response_id",
  "conversation",
  "conversation_id",
  "thread",
  "thread_id",
  "prompt_id",
  "cachedContent",
  "cached_content",
  "container",
] as const;

const FACTS = ["speed", "inference_geo"] as const;

/** What people write, and what they describe of their own tools: no place for a model that is to be asked. */
const WORDS: ReadonlySet<string> = new Set([
  "messages",
  "contents",
  "prompt",
  "system",
  "systemInstruction",
  "instructions",
  "input",
  "metadata",
  "parameters",
  "input_schema",
  "schema",
  "response_format",
  "text",
  "function",
  "user",
]);

/** Whose value is a name, or a list of them. */
const NAMING: ReadonlySet<string> = new Set([
  "models",
  "allowed_models",
  "fallback",
  "fallback_model",
  "fallback_models",
  "fallbacks",
]);

/** Named models beyond these make no difference to who is refused. */
const MOST_NAMED = 64;
const MOST_DEEP = 8;

const object = (v: unknown): Fields | undefined =>
  typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Fields) : undefined;
const list = (v: unknown): readonly unknown[] => (Array.isArray(v) ? v : []);

/** A count as backends read one: some take the text of a number for the number. */
function count(v: unknown): number | undefined {
  const n = typeof v === "string" && /^\s*\d{1,15}(?:\.\d*)?\s*$/.test(v) ? Number(v) : v;
  return typeof n === "number" && Number.isFinite(n) && n > 0 ? Math.ceil(n) : undefined;
}

const larger = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

function largest(body: Fields, names: readonly string[]): number | undefined {
  let most: number | undefined;
  for (const of of [body, ...INSIDE.map((place) => object(body[place]))])
    if (of)
      for (const name of names) if (Object.hasOwn(of, name)) most = larger(most, count(of[name]));
  return most;
}

/** A field that multiplies answers, in whichever protocol: none of them goes from one wire to another. */
export const multiplies = (field: string): boolean =>
  (ANSWERS as readonly string[]).includes(field);

/** How many answers a backend may make of this. */
export const answersIn = (body: Fields): number | undefined => largest(body, ANSWERS);

/** The bound of one answer, as it is documented for this wire, or the larger one that stands beside it. */
export const boundIn = (body: Fields, documented: Opt<number>): number | undefined =>
  documented === undefined ? undefined : larger(documented, largest(body, BOUNDS));

/** What multiplies a price, as a request asks for it. */
export function factsIn(body: Fields): { readonly [fact: string]: string } | undefined {
  let facts: Record<string, string> | undefined;
  for (const name of FACTS) {
    const said = body[name];
    if (typeof said === "string") (facts ??= {})[name] = said;
  }
  return facts;
}

function tierIn(body: Fields): string | undefined {
  let tier: string | undefined;
  for (const name of TIERS) {
    const said = body[name];
    if (typeof said === "string" && (tier === undefined || NO_DEARER.has(tier))) tier = said;
  }
  return tier;
}

/** What upstream is to run by itself, where the words for it are not this wire's own. */
export function hostedIn(body: Fields): readonly Feature[] {
  const found = new Set<Feature>();
  for (const field of SEARCHES)
    if (![undefined, null, false].includes(body[field] as never)) found.add("hosted.web_search");
  for (const raw of list(body["tools"])) {
    const tool = object(raw);
    if (!tool || typeof tool["type"] === "string" || OWN_MEMBERS.some((m) => m in tool)) continue;
    for (const name in tool) found.add(`hosted.${name}`);
  }
  return [...found];
}

/** All that a survey says of money. `documented`: the bounds by their names in this wire, of an answer and of runs of tools. */
export function spending(
  body: Fields,
  documented: { output: Opt<number>; runs?: Opt<number> },
): Pick<Survey, "maxOutput" | "n" | "tier" | "facts" | "models" | "runs" | "kept"> {
  const kept = KEPT.some((field) => body[field] !== undefined && body[field] !== null);
  const tier = tierIn(body);
  const n = answersIn(body);
  const facts = factsIn(body);
  const models = modelsIn(body);
  const runs = larger(documented.runs ?? undefined, runsIn(body));
  return {
    maxOutput: boundIn(body, documented.output),
    ...(n !== undefined && { n }),
    ...(tier !== undefined && { tier }),
    ...(facts && { facts }),
    ...(models.length > 0 && { models }),
    ...(runs !== undefined && { runs }),
    ...(kept && { kept }),
  };
}

/** Other models than the one that is called, wherever one may be named: to fall back on, to ask for advice, to draw. */
function modelsIn(body: Fields): NonNullable<Survey["models"]> {
  const found = new Map<string, { model: string; uses?: number }>();
  const add = (model: unknown, uses?: number): void => {
    if (typeof model !== "string" || model === "" || model === body["model"]) return;
    if (found.size < MOST_NAMED) found.set(model, { model, ...(uses !== undefined && { uses }) });
  };
  const look = (value: unknown, deep: number): void => {
    if (typeof value !== "object" || value === null || deep > MOST_DEEP) return;
    if (Array.isArray(value)) return value.forEach((one) => look(one, deep + 1));
    const of = value as Fields;
    for (const key in of) {
      const said = of[key];
      if (key === "model") add(said, count(of["max_uses"]));
      else if (NAMING.has(key)) for (const one of Array.isArray(said) ? said : [said]) add(one);
      if (!WORDS.has(key)) look(said, deep + 1);
    }
  };
  look(body, 0);
  for (const item of list(body["input"])) look(object(item)?.["tools"], 0);
  return [...found.values()];
}

/** How often tools that upstream runs may run: undefined where one of them has no bound. */
function runsIn(body: Fields): number | undefined {
  if (SEARCHES.some((field) => body[field] !== undefined)) return undefined;
  let runs: number | undefined;
  for (const raw of list(body["tools"])) {
    const tool = object(raw);
    if (!tool || tool["type"] === undefined || OWN.has(String(tool["type"]))) continue;
    const uses = count(tool["max_uses"]);
    if (uses === undefined) return undefined;
    runs = (runs ?? 0) + uses;
  }
  return runs;
}

/** A tool without a type that has one of these is described for the model, and a client runs it. */
const OWN_MEMBERS = [
  "function",
  "custom",
  "name",
  "input_schema",
  "functionDeclarations",
  "function_declarations",
] as const;

/** A client runs these itself. */
const OWN: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

/**
 * Whether a body asks for thought, in whichever words: a backend may read any of them, so one that switches it on outweighs all
 * that switch it off. Undefined: it says nothing.
 */
export function asksThought(get: (field: string) => unknown): "on" | "off" | undefined {
  const reasoning = object(get("reasoning"));
  const thinking = object(get("thinking"));
  const template = object(get("chat_template_kwargs"));
  const google = object(object(get("generationConfig"))?.["thinkingConfig"]);
  const said = [
    get("reasoning_effort"),
    reasoning?.["effort"],
    reasoning?.["enabled"],
    reasoning?.["max_tokens"],
    thinking?.["type"],
    get("enable_thinking"),
    get("thinking_budget"),
    template?.["enable_thinking"],
    template?.["thinking"],
    google?.["thinkingBudget"],
    google?.["thinkingLevel"],
  ].filter((one) => one !== undefined && one !== null);
  if (said.length === 0) return undefined;
  return said.every((one) => OFF.has(one)) ? "off" : "on";
}

const OFF: ReadonlySet<unknown> = new Set([false, 0, "none", "disabled", "off"]);
