// What a model takes of what is said about thinking, and of what tunes it: decided here from what is known of it, for every
// client half. Where nothing is known, what was asked is sent.
import type { ModelInfo } from "../model/facts.ts";
import type { ChatRequest } from "../model/request.ts";
import type { CallContext } from "../plugin/index.ts";

/** From little to much; the words of every protocol. */
const EFFORT_LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** What an effort stands for in tokens, where a model counts those. `max` has no bound. */
export const EFFORT_BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
};

/** The effort that comes nearest to a budget of tokens. */
export function effortForBudget(budget: number): string {
  if (budget <= 1024) return "minimal";
  if (budget <= 4096) return "low";
  if (budget <= 12_288) return "medium";
  return budget <= 24_576 ? "high" : "xhigh";
}

/** The effort itself where the model knows it; else the next lower one, or its lowest. */
export function nearestEffort(effort: string, known: readonly string[] | undefined): string {
  const at = EFFORT_LEVELS.indexOf(effort);
  // A word that is newer than us is the upstream's to judge.
  if (!known || known.includes(effort) || at < 0) return effort;
  const thinking = known.filter((one) => one !== "none");
  return thinking.findLast((one) => EFFORT_LEVELS.indexOf(one) <= at) ?? thinking[0] ?? effort;
}

/** What a provider's row says of its models, in part. */
export interface ReasoningRow {
  control?: string;
  efforts?: readonly string[];
  canDisable?: false;
}

export interface ReasoningSupport {
  /** false: it does not think, or takes no word about it. */
  readonly isSupported: boolean | undefined;
  /** From low to high, without `none`. */
  readonly efforts: readonly string[] | undefined;
  /** Whether it can be told not to; false only where it is known to think always. */
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

/** Without what this model is known to answer with an error. */
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
