// What makes an answer dearer than its tokens say, wherever a body says it: how many answers, at which speed, by which
// other models, with how many runs of tools. Backends that imitate a protocol read more fields than it documents, so one
// list of names serves all wires: a name that a backend does not read costs nothing but a larger hold.
import type { JsonObject, Opt } from "../model/values.ts";
import type { Named } from "../plugin/look.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { Survey } from "../plugin/protocol.ts";
import { list, object } from "./json.ts";
import { hostedBy } from "./look/index.ts";

type Fields = { readonly [field: string]: unknown };

/** Each of these has asked some backend for more than one answer, or picture, at once. */
const ANSWERS: ReadonlySet<string> = new Set([
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
]);

/** Objects in which such a field may stand instead of at the top. */
const INSIDE: ReadonlySet<string> = new Set([
  "generationConfig",
  "generation_config",
  "parameters",
  "options",
]);
const NOWHERE: ReadonlySet<string> = new Set();

/** Names of the bound of one answer. Where the documented one is set, a backend may read a larger one here. */
const BOUNDS: ReadonlySet<string> = new Set([
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "max_new_tokens",
  "max_tokens_to_sample",
  "maxOutputTokens",
]);

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

/** A body has few fields, and there are many names: each field is looked up once. */
function largest(
  body: Fields,
  names: ReadonlySet<string>,
  inside: ReadonlySet<string> = INSIDE,
): number | undefined {
  let most: number | undefined;
  for (const field in body)
    if (names.has(field)) most = larger(most, count(body[field]));
    else if (inside.has(field)) {
      const of = object(body[field]);
      if (of) most = larger(most, largest(of, names, NOWHERE));
    }
  return most;
}

/** A field that multiplies answers, in whichever protocol: none of them goes from one wire to another. */
export const multiplies = (field: string): boolean => ANSWERS.has(field);

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
  return {
    maxOutput: boundIn(body, documented.output),
    n: answersIn(body),
    tier: tierIn(body),
    facts: factsIn(body),
    models: named.length === 0 ? undefined : modelsIn(body, named),
    runs: larger(documented.runs ?? undefined, runsIn(body, named)),
    kept: named.some((one) => one.kind === "state" && one.does === "names") || undefined,
  };
}

/** Other models than the one that is called: to fall back on, to ask for advice, to draw. One without a bound has none. */
function modelsIn(body: Fields, named: Named): Survey["models"] {
  const found = new Map<string, number | undefined>();
  for (const one of named) {
    if (one.kind !== "model" || one.model === body["model"]) continue;
    const uses = count(one.uses);
    const before = found.get(one.model);
    const known = !found.has(one.model) || before !== undefined;
    found.set(one.model, known && uses !== undefined ? (before ?? 0) + uses : undefined);
  }
  if (found.size === 0) return undefined;
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
  let said: "on" | "off" | undefined;
  for (const { field, at, members } of THOUGHT) {
    const value = get(field);
    if (value === undefined || value === null) continue;
    if (!members) said = heard(said, value);
    else {
      const of = object(at === undefined ? value : object(value)?.[at]);
      if (of) for (const member of members) said = heard(said, of[member]);
    }
  }
  return said;
}

const heard = (before: "on" | "off" | undefined, value: unknown): "on" | "off" | undefined =>
  value === undefined || value === null || before === "on" ? before : OFF.has(value) ? "off" : "on";

/** Where a body may say it: a field, or members of the object in it, or of the one inside of that. */
const THOUGHT: readonly {
  readonly field: string;
  readonly at?: string;
  readonly members?: readonly string[];
}[] = [
  { field: "reasoning_effort" },
  { field: "reasoning", members: ["effort", "enabled", "max_tokens"] },
  { field: "thinking", members: ["type"] },
  { field: "enable_thinking" },
  { field: "thinking_budget" },
  { field: "chat_template_kwargs", members: ["enable_thinking", "thinking"] },
  { field: "generationConfig", at: "thinkingConfig", members: ["thinkingBudget", "thinkingLevel"] },
];

const OFF: ReadonlySet<unknown> = new Set([false, 0, "none", "disabled", "off"]);

/** Where a body does not switch thoughts off, there may be some. */
export const mayThink = (out: Outgoing): boolean =>
  asksThought((field) => out.get(field)) !== "off";
