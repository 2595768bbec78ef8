// Reads the facts of a request body that change its price beyond token counts: number of responses,
// speed, additional models, and runs of hosted tools. A field that raises the price is recognized
// under every name that any backend reads. A field that lowers the price is recognized only in the
// form that the protocol documents.
import type { JsonObject, Opt, Body } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { References, RequestFacts } from "../plugin/references.ts";
import { asList, asObject } from "./json-values.ts";
import { findReferences, referencedFeatures } from "./references/find-references.ts";
import { hostedToolFeatures } from "./references/index.ts";
import { readRequestedAmounts } from "./requested-amounts.ts";

type Fields = { readonly [field: string]: unknown };

const TIER_FIELDS = ["service_tier", "serviceTier"] as const;
/**
 * Service tiers that cost no more than the standard price. If a body names two tiers, a tier
 * outside this set takes precedence.
 */
const STANDARD_PRICED_TIERS: ReadonlySet<string> = new Set([
  "auto",
  "batch",
  "default",
  "flex",
  "standard",
  "standard_only",
]);

const PRICING_ATTRIBUTES = ["speed", "inference_geo"] as const;

/**
 * Returns a count that makes a reservation smaller. Only the documented form counts: a positive
 * integer.
 */
const documentedCount = (v: unknown): number | undefined =>
  typeof v === "number" && Number.isInteger(v) && v > 0 ? v : undefined;

const maxDefined = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

/** Returns the request fields that multiply a price, such as `speed`. */
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

/** Fields that a protocol documents. Only these can make a reservation smaller. */
export interface DocumentedFields {
  /** Token limit of one response. */
  readonly maxOutput: Opt<number>;
  /** Name of the field in which a limit of 0 is documented. */
  readonly zeroOutputField?: string;
  /** Name of the field that limits the runs of all tools. */
  readonly maxRunsField?: string;
  /** Whether a tool can limit its own runs with `max_uses`. */
  readonly toolsHaveMaxUses?: boolean;
}

/** Returns the facts of a request whose responses have no token limit. */
export function analyzeFields(fields: Fields): RequestFacts {
  const references = findReferences(fields as Body);
  const { n: _, ...spent } = analyzeCost(fields, references, { maxOutput: undefined });
  return { features: [...referencedFeatures(references)], references, ...spent };
}

/**
 * Returns the cost-related part of the request facts.
 *
 * @param named References that were found in the body.
 */
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
  // If no field documents 0, a limit of 0 or below means that there is no limit.
  const output =
    (documented.maxOutput ?? -1) < (zeroOutputField === undefined ? 1 : 0)
      ? undefined
      : documented.maxOutput;
  return {
    // A backend may read a limit in another field instead of the documented one, so the larger
    // limit counts.
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

/**
 * Returns the path of a tier, pricing attribute, or run limit in a form that this protocol does not
 * document.
 */
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
 * Returns models other than the requested one, for example fallbacks, advisors, and image models
 * that tools call.
 *
 * @param bounded Whether a tool can state how often it calls its model.
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

/** Returns how often hosted tools can run in total. Returns undefined if one tool has no limit. */
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
 * Returns whether a body requests reasoning, under any field name that a backend may read. Returns
 * undefined if the body does not mention reasoning.
 *
 * A backend may read any of the fields, so one field that enables reasoning outweighs all fields
 * that disable it.
 *
 * @param documented Fields in which the API of this backend documents "off". "Off" in another field
 *   is ignored, because a backend that does not read the field still reasons.
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

/**
 * Fields that switch reasoning. The switch is the field itself, members of its object, or members
 * of the object at `at` inside the field.
 */
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

/**
 * Whether the response may contain reasoning, because no documented field of the body disables it.
 */
export const mayReason = (out: Outgoing, documented: readonly string[]): boolean =>
  requestsReasoning((field) => out.get(field), documented) !== "off";
