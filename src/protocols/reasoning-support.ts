// Decides which reasoning and sampling settings a model accepts, based on its model metadata, for
// every client half. If nothing is known about the model, the client's settings are sent.
import type { ModelInfo } from "../model/facts.ts";
import type { ChatRequest } from "../model/request.ts";
import type { CallContext } from "../plugin/index.ts";

/** Effort names of all protocols, from lowest to highest. */
const EFFORT_LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Token budget of each effort, for models that take a token count. `max` has no limit. */
export const EFFORT_BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
};

/** Returns the effort that is closest to a token budget. */
export function effortForBudget(budget: number): string {
  if (budget <= 1024) return "minimal";
  if (budget <= 4096) return "low";
  if (budget <= 12_288) return "medium";
  return budget <= 24_576 ? "high" : "xhigh";
}

/**
 * Returns the effort if the model supports it, else the next lower supported effort, else the
 * lowest.
 */
export function nearestEffort(effort: string, known: readonly string[] | undefined): string {
  const at = EFFORT_LEVELS.indexOf(effort);
  // Unknown efforts may be newer than the gateway, so they are forwarded for the provider to judge.
  if (!known || known.includes(effort) || at < 0) return effort;
  const thinking = known.filter((one) => one !== "none");
  return thinking.findLast((one) => EFFORT_LEVELS.indexOf(one) <= at) ?? thinking[0] ?? effort;
}

/** The part of a provider definition that describes how its models reason. */
export interface ReasoningRow {
  control?: string;
  efforts?: readonly string[];
  canDisable?: false;
}

export interface ReasoningSupport {
  /**
   * Whether the model reasons and accepts a setting for it. false: it does not reason, or accepts
   * no setting. Undefined: unknown.
   */
  readonly isSupported: boolean | undefined;
  /** Supported efforts from lowest to highest, without `none`. */
  readonly efforts: readonly string[] | undefined;
  /**
   * Whether reasoning can be disabled. false: the model is known to reason always. Undefined:
   * unknown.
   */
  readonly canDisable: boolean | undefined;
}

export function reasoningSupportOf(info: ModelInfo, row?: ReasoningRow): ReasoningSupport {
  return {
    isSupported: row?.control === "none" ? false : (info.can?.reasoning ?? undefined),
    efforts: row?.efforts?.filter((effort) => effort !== "none"),
    canDisable: row?.canDisable ?? (row?.efforts?.includes("none") || undefined),
  };
}

const SAMPLING_FIELDS = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  presence_penalty: "presence",
  frequency_penalty: "frequency",
  seed: "seed",
  logit_bias: "logitBias",
} as const;

/**
 * Returns the sampling settings without those that this model is known to reject. Each dropped
 * setting is reported.
 */
export function supportedSampling(
  { sampling }: ChatRequest,
  of: CallContext,
): ChatRequest["sampling"] {
  const kept = { ...sampling };
  for (const field of of.info.rejectedFields ?? []) {
    if (!Object.hasOwn(SAMPLING_FIELDS, field)) continue;
    const name = SAMPLING_FIELDS[field as keyof typeof SAMPLING_FIELDS];
    if (kept[name] === undefined) continue;
    delete kept[name];
    of.reportLoss(field, "dropped");
  }
  return kept;
}
