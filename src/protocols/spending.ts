// What makes an answer cost more than its tokens: how many answers, at which speed, by which other models, with how many runs of
// tools. What makes it dearer counts under any name that some backend reads. What makes it cheaper counts only in the form that the
// protocol documents.
import type { JsonObject, Opt } from "../model/values.ts";
import type { Named } from "../plugin/look.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { Survey } from "../plugin/survey.ts";
import { amountsIn } from "./amounts.ts";
import { list, object } from "./json.ts";
import { hostedBy } from "./look/index.ts";

type Fields = { readonly [field: string]: unknown };

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

/** A count that makes a hold smaller: as this protocol documents it, and in no other form. */
const documentedCount = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isInteger(v) && v > 0 ? v : undefined;

const larger = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

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

/** What a protocol documents of its own fields: only these can make a hold smaller. */
export interface Documented {
  /** The bound of one answer. */
  readonly output: Opt<number>;
  /** The field in which a bound of 0 is documented. */
  readonly zero?: string;
  /** The member that bounds the runs of all tools. */
  readonly runs?: string;
  /** Whether a tool may bound its own runs, as `max_uses`. */
  readonly uses?: boolean;
}

/** The part of a survey that is about money. `named`: what was found in the body. */
export function spending(
  body: Fields,
  named: Named,
  documented: Documented,
): Pick<Survey, "maxOutput" | "n" | "tier" | "facts" | "models" | "runs" | "kept" | "unreadable"> {
  const { answers, bound, unreadable } = amountsIn(body, documented.zero);
  const { uses = false, zero } = documented;
  // Elsewhere a bound of 0, or below, means that there is none.
  const output =
    (documented.output ?? -1) < (zero === undefined ? 1 : 0) ? undefined : documented.output;
  return {
    // A bound beside the documented one may be the one that a backend reads.
    maxOutput: output === undefined ? undefined : larger(output, bound),
    n: answers,
    tier: tierIn(body),
    facts: factsIn(body),
    models: named.length === 0 ? undefined : modelsIn(body, named, uses),
    runs:
      documented.runs === undefined
        ? uses
          ? runsIn(body, named)
          : undefined
        : documentedCount(body[documented.runs]),
    kept: named.some((one) => one.kind === "state" && one.does === "names") || undefined,
    unreadable: unreadable ?? unreadableIn(body, documented),
  };
}

/** Terms and runs that are there in a form that this protocol does not document. */
function unreadableIn(body: Fields, { runs, uses }: Documented): string | undefined {
  for (const name of TIERS)
    if (body[name] !== undefined && body[name] !== null && typeof body[name] !== "string")
      return name;
  for (const name of FACTS) if (typeof body[name] === "object" && body[name] !== null) return name;
  if (runs !== undefined && body[runs] != null && documentedCount(body[runs]) === undefined)
    return runs;
  if (!uses) return undefined;
  const at = list(body["tools"]).findIndex((raw) => {
    const said = object(raw)?.["max_uses"];
    return said != null && documentedCount(said) === undefined;
  });
  return at < 0 ? undefined : `tools[${at}].max_uses`;
}

/**
 * Other models than the one that is called: to fall back on, to ask for advice, to draw. `bounded`: a tool may state how often it asks
 * its own.
 */
function modelsIn(body: Fields, named: Named, bounded: boolean): Survey["models"] {
  const found = new Map<string, number | undefined>();
  for (const one of named) {
    if (one.kind !== "model" || one.model === body["model"]) continue;
    const uses = bounded && /^tools\[\d+\]/.test(one.path) ? documentedCount(one.uses) : undefined;
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
    const uses = documentedCount(tool["max_uses"]);
    if (uses === undefined) return undefined;
    runs = (runs ?? 0) + uses;
  }
  return runs;
}

/**
 * Whether a body asks for thought, in whichever words: a backend may read any of them, so one that switches it on outweighs all
 * that switch it off. `documented`: the fields in which the API of this backend documents "off"; "off" in another field counts for
 * nothing, since a backend that does not read it thinks all the same. Undefined: it says nothing.
 */
export function asksThought(
  get: (field: string) => unknown,
  documented: readonly string[],
): "on" | "off" | undefined {
  let said: "on" | "off" | undefined;
  for (const { field, at, members } of THOUGHT) {
    const value = get(field);
    if (value === undefined || value === null) continue;
    const of = object(at === undefined ? value : object(value)?.[at]) ?? {};
    for (const one of members ? members.map((member) => of[member]) : [value]) {
      const now = heard(said, one);
      if (now === "on" || documented.includes(field)) said = now;
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

/** Where a body does not switch thoughts off in a field that is documented for that, there may be some. */
export const mayThink = (out: Outgoing, documented: readonly string[]): boolean =>
  asksThought((field) => out.get(field), documented) !== "off";
