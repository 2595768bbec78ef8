// Encodes the reasoning settings in the form that the model supports: a level or a token budget,
// never both.
import { ownEntry, omitUndefinedOrNothing } from "../../json-values.ts";
import { fail } from "../../../model/error.ts";
import type { ChatRequest, Reasoning } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import {
  EFFORT_BUDGETS,
  effortForBudget,
  nearestEffort,
  reasoningSupportOf,
} from "../../reasoning-support.ts";
import { sourceOf } from "../constants.ts";
import type { GeminiEncoding } from "./encoding-context.ts";

/** Output tokens to reserve for the response, because reasoning shares its limit. */
const MIN_OUTPUT_BESIDE_THOUGHTS = 1024;

/**
 * Returns `thinkingConfig`, or undefined if the request does not mention reasoning. The reasoning
 * text is included whenever reasoning is requested. Without it, the stream is silent while the
 * model reasons, and clients may treat the connection as broken.
 */
export function thinkingTo(r: ChatRequest, e: GeminiEncoding): JsonObject | undefined {
  const own = sourceOf<JsonObject>(r.reasoning);
  if (own) return omitUndefinedOrNothing(own);
  const { mode, effort, show } = r.reasoning;
  if (mode === "auto" && (show === undefined || show === "none")) return undefined;
  const off = mode === "off" || (mode === "effort" && effort === "none");
  if (e.traits.thinking === "none" || reasoningSupportOf(e.of.info).isSupported === false) {
    if (!off) e.of.reportLoss("reasoning", "dropped", "no_thinking");
    return undefined;
  }
  if (off) return switchedOff(e);
  const config = { includeThoughts: true };
  if (mode === "auto") return config;
  return e.traits.thinking === "level"
    ? { ...config, thinkingLevel: levelTo(r.reasoning, e).toUpperCase() }
    : { ...config, thinkingBudget: budgetTo(r, e) };
}

function switchedOff(e: GeminiEncoding): JsonObject {
  if (e.traits.thinking === "budget" && e.traits.canDisableThinking) return { thinkingBudget: 0 };
  if (e.traits.thinking === "level" && e.traits.levels.includes("minimal")) {
    e.of.reportLoss("reasoning", "approximated", "least_thinking");
    return { thinkingLevel: "MINIMAL" };
  }
  // Reasoning would be billed to a client that disabled it, so the request is rejected.
  return fail("unsupported", `Reasoning cannot be disabled for ${e.of.model}.`, {
    param: "reasoning",
    code: "thinking_required",
  });
}

function levelTo(reasoning: Reasoning, e: GeminiEncoding): string {
  const { levels } = e.traits;
  const asked = reasoning.effort ?? effortForBudget(reasoning.budget ?? MIN_OUTPUT_BESIDE_THOUGHTS);
  if (reasoning.effort === undefined)
    e.of.reportLoss("reasoning.budget", "approximated", "budget_as_level");
  const level = nearestEffort(asked, levels);
  if (reasoning.effort !== undefined && level !== asked)
    e.of.reportLoss("reasoning.effort", "approximated");
  return level;
}

function budgetTo(r: ChatRequest, e: GeminiEncoding): number {
  const { mode, effort = "medium", budget } = r.reasoning;
  const [least, most] = e.traits.budget;
  const fit = (tokens: number, cap: number) => Math.max(least, Math.min(tokens, cap));
  if (mode === "budget" && budget !== undefined) {
    const fits = fit(budget, most);
    if (fits !== budget) e.of.reportLoss("reasoning.budget", "approximated");
    return fits;
  }
  e.of.reportLoss("reasoning", "approximated", "effort_as_budget");
  const limit = r.output.maxTokens;
  return fit(
    ownEntry(EFFORT_BUDGETS, effort) ?? most,
    limit === undefined ? most : Math.min(most, limit - MIN_OUTPUT_BESIDE_THOUGHTS),
  );
}
