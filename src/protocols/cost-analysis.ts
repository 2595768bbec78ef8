// What makes an answer cost more than its tokens: how many answers, at which speed, by which other models, with how many runs of
// tools. What makes it dearer counts under any name that some backend reads. What makes it cheaper counts only in the form that the
// protocol documents.
import type { JsonObject, Opt } from "../model/values.ts";
import type { References } from "../plugin/references.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { RequestFacts } from "../plugin/request-facts.ts";
import { readRequestedAmounts } from "./requested-amounts.ts";
import { asList, asObject } from "./json-values.ts";
import { hostedToolFeatures } from "./references/index.ts";

type Fields = { readonly [field: string]: unknown };

const TIER_FIELDS = ["service_tier", "serviceTier"] as const;
/** Of two that are asked for, one that costs more than these is the one to pay for. */
const STANDARD_PRICED_TIERS: ReadonlySet<string> = new Set([
  "auto",
  "batch",
  "default",
  "flex",
  "standard",
  "standard_only",
]);

const PRICING_ATTRIBUTES = ["speed", "inference_geo"] as const;

/** A count that makes a hold smaller: as this protocol documents it, and in no other form. */
const documentedCount = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isInteger(v) && v > 0 ? v : undefined;

const maxDefined = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

/** What multiplies a price, as a request asks for it. */
export function readPricingAttributes(
  body: Fields,
): { readonly [fact: string]: string } | undefined {
  let facts: Record<string, string> | undefined;
  for (const name of PRICING_ATTRIBUTES) {
    const value = body[name];
    if (typeof value === "string") (facts ??= {})[name] = value;
  }
  return facts;
}

function readServiceTier(body: Fields): string | undefined {
  let tier: string | undefined;
  for (const name of TIER_FIELDS) {
    const value = body[name];
    if (typeof value === "string" && (tier === undefined || STANDARD_PRICED_TIERS.has(tier)))
      tier = value;
  }
  return tier;
}

/** What a protocol documents of its own fields: only these can make a hold smaller. */
export interface DocumentedFields {
  /** The bound of one answer. */
  readonly maxOutput: Opt<number>;
  /** The field in which a bound of 0 is documented. */
  readonly zeroOutputField?: string;
  /** The member that bounds the runs of all tools. */
  readonly maxRunsField?: string;
  /** Whether a tool may bound its own runs, as `max_uses`. */
  readonly toolsHaveMaxUses?: boolean;
}

/** The part of a survey that is about money. `named`: what was found in the body. */
export function analyzeCost(
  body: Fields,
  named: References,
  documented: DocumentedFields,
): Pick<
  RequestFacts,
  | "maxOutput"
  | "n"
  | "tier"
  | "pricingAttributes"
  | "additionalModels"
  | "maxToolRuns"
  | "readsStoredContent"
  | "unreadableField"
> {
  const { responses, maxOutput, unreadableField } = readRequestedAmounts(
    body,
    documented.zeroOutputField,
  );
  const { toolsHaveMaxUses = false, zeroOutputField } = documented;
  // Elsewhere a bound of 0, or below, means that there is none.
  const output =
    (documented.maxOutput ?? -1) < (zeroOutputField === undefined ? 1 : 0)
      ? undefined
      : documented.maxOutput;
  return {
    // A bound beside the documented one may be the one that a backend reads.
    maxOutput: output === undefined ? undefined : maxDefined(output, maxOutput),
    n: responses,
    tier: readServiceTier(body),
    pricingAttributes: readPricingAttributes(body),
    additionalModels:
      named.length === 0 ? undefined : findAdditionalModels(body, named, toolsHaveMaxUses),
    maxToolRuns:
      documented.maxRunsField === undefined
        ? toolsHaveMaxUses
          ? maxToolRuns(body, named)
          : undefined
        : documentedCount(body[documented.maxRunsField]),
    readsStoredContent:
      named.some((one) => one.type === "state" && one.effect === "refers") || undefined,
    unreadableField: unreadableField ?? findUnreadableField(body, documented),
  };
}

/** Terms and runs that are there in a form that this protocol does not document. */
function findUnreadableField(
  body: Fields,
  { maxRunsField, toolsHaveMaxUses }: DocumentedFields,
): string | undefined {
  for (const name of TIER_FIELDS)
    if (body[name] !== undefined && body[name] !== null && typeof body[name] !== "string")
      return name;
  for (const name of PRICING_ATTRIBUTES)
    if (typeof body[name] === "object" && body[name] !== null) return name;
  if (
    maxRunsField !== undefined &&
    body[maxRunsField] != null &&
    documentedCount(body[maxRunsField]) === undefined
  )
    return maxRunsField;
  if (!toolsHaveMaxUses) return undefined;
  const at = asList(body["tools"]).findIndex((raw) => {
    const value = asObject(raw)?.["max_uses"];
    return value != null && documentedCount(value) === undefined;
  });
  return at < 0 ? undefined : `tools[${at}].max_uses`;
}

/**
 * Other models than the one that is called: to fall back on, to ask for advice, to draw. `bounded`: a tool may state how often it asks
 * its own.
 */
function findAdditionalModels(
  body: Fields,
  named: References,
  bounded: boolean,
): RequestFacts["additionalModels"] {
  const found = new Map<string, number | undefined>();
  for (const one of named) {
    if (one.type !== "model" || one.model === body["model"]) continue;
    const uses =
      bounded && /^tools\[\d+\]/.test(one.path) ? documentedCount(one.maxUses) : undefined;
    const before = found.get(one.model);
    const known = !found.has(one.model) || before !== undefined;
    found.set(one.model, known && uses !== undefined ? (before ?? 0) + uses : undefined);
  }
  if (found.size === 0) return undefined;
  return Array.from(found, ([model, uses]) => ({
    model,
    ...(uses !== undefined && { maxUses: uses }),
  }));
}

/** How often tools that upstream runs may run: undefined where one of them has no bound. */
function maxToolRuns(body: Fields, named: References): number | undefined {
  if (named.some(({ type, path }) => type === "hosted" && !/^tools\[\d+\]$/.test(path)))
    return undefined;
  let runs: number | undefined;
  for (const raw of asList(body["tools"])) {
    const tool = asObject(raw);
    if (!tool || tool["type"] === undefined || hostedToolFeatures(tool as JsonObject) === null)
      continue;
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
export function requestsReasoning(
  get: (field: string) => unknown,
  documented: readonly string[],
): "on" | "off" | undefined {
  let state: "on" | "off" | undefined;
  for (const { field, at, members } of REASONING_SWITCHES) {
    const value = get(field);
    if (value === undefined || value === null) continue;
    const of = asObject(at === undefined ? value : asObject(value)?.[at]) ?? {};
    for (const one of members ? members.map((member) => of[member]) : [value]) {
      const now = combineSwitch(state, one);
      if (now === "on" || documented.includes(field)) state = now;
    }
  }
  return state;
}

const combineSwitch = (
  before: "on" | "off" | undefined,
  value: unknown,
): "on" | "off" | undefined =>
  value === undefined || value === null || before === "on"
    ? before
    : OFF_VALUES.has(value)
      ? "off"
      : "on";

/** Where a body may say it: a field, or members of the object in it, or of the one inside of that. */
const REASONING_SWITCHES: readonly {
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

const OFF_VALUES: ReadonlySet<unknown> = new Set([false, 0, "none", "disabled", "off"]);

/** Where a body does not switch thoughts off in a field that is documented for that, there may be some. */
export const mayReason = (out: Outgoing, documented: readonly string[]): boolean =>
  requestsReasoning((field) => out.get(field), documented) !== "off";
