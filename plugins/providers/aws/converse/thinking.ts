// Encodes the reasoning effort. Converse takes an effort and no token budget, which the model
// chooses.
import type { CallContext, ChatRequest, JsonObject } from "tollgate/plugin";
import { effortForBudget, nearestEffort } from "tollgate/protocols/codec";

/** Efforts from low to high. */
const EFFORTS = ["low", "medium", "high", "xhigh", "max"];

export function effortTo({ reasoning }: ChatRequest, of: CallContext): JsonObject {
  const { mode, effort, budget } = reasoning;
  if (mode === "auto") return {};
  if (of.info.can?.reasoning === false) {
    if (!isOff(reasoning)) of.reportLoss("reasoning", "dropped", "no_thinking");
    return {};
  }
  if (isOff(reasoning)) {
    of.reportLoss("reasoning", "approximated", "reasoning_left_on");
    return {};
  }
  if (mode === "budget") of.reportLoss("reasoning.budget", "approximated", "budget_as_effort");
  const asked = mode === "budget" ? effortForBudget(budget ?? 0) : (effort ?? "medium");
  const effortName = nearestEffort(asked, EFFORTS);
  if (mode === "effort" && effortName !== asked) of.reportLoss("reasoning.effort", "approximated");
  return { effort: effortName };
}

const isOff = ({ mode, effort }: ChatRequest["reasoning"]): boolean =>
  mode === "off" || (mode === "effort" && effort === "none");
