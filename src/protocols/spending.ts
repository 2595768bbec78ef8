// What makes an answer dearer than its tokens say, wherever a body says it: how many answers, at which speed, by which
// other models, with how many runs of tools. Backends that imitate a protocol read more fields than it documents, so one
// list of names serves all wires: a name that a backend does not read costs nothing but a larger hold.
import type { JsonObject, Opt } from "../model/values.ts";
import type { Named } from "../plugin/look.ts";
import type { Survey } from "../plugin/protocol.ts";
import { list, object } from "./json.ts";
import { hostedBy } from "./look/index.ts";

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

const FACTS = ["speed", "inference_geo"] as const;

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

/**
 * All that a survey says of money. `named`: what was found in the body. `documented`: the bounds by their names in this wire, of an
 * answer and of runs of tools.
 */
export function spending(
  body: Fields,
  named: Named,
  documented: { output: Opt<number>; runs?: Opt<number> },
): Pick<Survey, "maxOutput" | "n" | "tier" | "facts" | "models" | "runs" | "kept"> {
  const kept = named.some((one) => one.kind === "state" && one.does === "names");
  const tier = tierIn(body);
  const n = answersIn(body);
  const facts = factsIn(body);
  const models = modelsIn(body, named);
  const runs = larger(documented.runs ?? undefined, runsIn(body, named));
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

/** Other models than the one that is called: to fall back on, to ask for advice, to draw. One without a bound has none. */
function modelsIn(body: Fields, named: Named): NonNullable<Survey["models"]> {
  const found = new Map<string, number | undefined>();
  for (const one of named) {
    if (one.kind !== "model" || one.model === body["model"]) continue;
    const uses = count(one.uses);
    const before = found.get(one.model);
    const known = !found.has(one.model) || before !== undefined;
    found.set(one.model, known && uses !== undefined ? (before ?? 0) + uses : undefined);
  }
  return Array.from(found, ([model, uses]) => ({ model, ...(uses !== undefined && { uses }) }));
}

/** How often tools that upstream runs may run: undefined where one of them has no bound. */
function runsIn(body: Fields, named: Named): number | undefined {
  if (named.some(({ kind, path }) => kind === "hosted" && !/^tools\[\d+\]$/.test(path)))
    return undefined;
  let runs: number | undefined;
  for (const raw of list(body["tools"])) {
    const tool = object(raw);
    if (!tool || tool["type"] === undefined || hostedBy(tool as JsonObject) === null) continue;
    const uses = count(tool["max_uses"]);
    if (uses === undefined) return undefined;
    runs = (runs ?? 0) + uses;
  }
  return runs;
}

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
