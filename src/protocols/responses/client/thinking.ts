// Encodes the reasoning settings in the form that this protocol and the model support.
import { fail } from "../../../model/error.ts";
import type { Reasoning } from "../../../model/request.ts";
import type { CallContext, ChatRequest, Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { effortForBudget, nearestEffort, type ReasoningSupport } from "../../reasoning-support.ts";
import type { PartContext } from "../parts.ts";
import { omitUndefined } from "../../json-values.ts";
import { ORIGIN } from "../constants.ts";

export function reasoningTo(
  { reasoning: r, ext }: ChatRequest,
  reasons: ReasoningSupport,
  of: CallContext,
  style: Opt<Json>,
  own: JsonObject | undefined,
  losses: PartContext,
): JsonObject | undefined {
  const native = ext[ORIGIN] !== undefined;
  if (!native && reasons.isSupported === false) {
    if (r.mode === "effort" || r.mode === "budget") losses.reportLoss("reasoning", "dropped");
    return undefined;
  }
  const effort = native && r.mode !== "budget" ? ownEffort(r) : effortTo(r, reasons, of, losses);
  if (r.mode === "off" && effort === undefined) return undefined;
  const summary = r.show === "summary" || r.show === "full" ? (style ?? "auto") : undefined;
  const options = omitUndefined({ effort, summary, ...own });
  return Object.keys(options).length > 0 ? options : undefined;
}

/**
 * Returns the effort of a request in this protocol unchanged, because only the client and the model
 * interpret it.
 */
const ownEffort = ({ mode, effort }: Reasoning): string | undefined =>
  mode === "off" ? "none" : effort;

function effortTo(
  r: Reasoning,
  reasons: ReasoningSupport,
  of: CallContext,
  losses: PartContext,
): string | undefined {
  switch (r.mode) {
    case "off":
      return switchedOff(reasons, of, losses);
    case "budget":
      losses.reportLoss("thinking.budget_tokens", "approximated");
      return nearestEffort(effortForBudget(r.budget ?? 0), reasons.efforts);
    default: {
      if (r.effort === undefined) return undefined;
      const effort = nearestEffort(r.effort, reasons.efforts);
      if (effort !== r.effort) losses.reportLoss("reasoning.effort", "approximated");
      return effort;
    }
  }
}

export const ENCRYPTED = "reasoning.encrypted_content";

/**
 * Whether encrypted reasoning is requested. Requesting it from a model that does not reason is an
 * error. If it is not requested from a model that reasons, the next turn loses the reasoning.
 * `isRequested` decides if support is unknown.
 */
export const mayReason = ({ isSupported }: ReasoningSupport, isRequested: boolean): boolean =>
  isSupported ?? isRequested;

function switchedOff(
  { isSupported, canDisable, efforts }: ReasoningSupport,
  of: CallContext,
  losses: PartContext,
): string | undefined {
  // The client turned reasoning off, so it must not be billed for reasoning.
  if (canDisable === false)
    fail("unsupported", `Reasoning cannot be disabled for ${of.model}.`, {
      code: "thinking_always_on",
      param: "reasoning",
    });
  if (canDisable === true || (isSupported === true && !efforts)) return "none";
  // A model that may not support `none` would reject it. Reasoning with the least effort is better
  // than a failure.
  losses.reportLoss("reasoning", "approximated", efforts ? "least_effort" : "reasoning_left_on");
  return efforts?.[0];
}
