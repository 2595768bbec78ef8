// Adapts the reasoning settings of a request to the form that the model supports. The documented
// fields are `thinking` and `reasoning_effort`. Other fields that a client sets are left unchanged.
import { ownEntry, asObject, asText } from "../../json-values.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, JsonObject, Outgoing } from "../../../plugin/index.ts";
import type { ChatTraits, ReasoningTraits } from "../dialect.ts";
import { EFFORT_BUDGETS, nearestEffort, reasoningSupportOf } from "../../reasoning-support.ts";

/**
 * Thinking budget in tokens for efforts without a specific budget. It is twice the largest budget
 * in `EFFORT_BUDGETS`.
 */
const MAX_BUDGET = 65_536;

const CONTROL_FIELDS: {
  readonly [control in NonNullable<ReasoningTraits["control"]>]: readonly string[];
} = {
  effort: ["reasoning_effort"],
  "thinking.type": ["thinking"],
  enable_thinking: ["enable_thinking"],
  chat_template_kwargs: ["chat_template_kwargs"],
  "reasoning.enabled": ["reasoning"],
  reasoning: ["reasoning"],
  none: [],
};

/**
 * Returns the fields in which this backend documents that reasoning can be disabled. Returns an
 * empty list for an unknown model.
 */
export function reasoningOffFields(of: CallContext, { reasoning }: ChatTraits): readonly string[] {
  if (reasoning?.canDisable === false) return [];
  if (reasoning?.control) return CONTROL_FIELDS[reasoning.control];
  return of.info.can?.reasoning === true ? CONTROL_FIELDS.effort : [];
}

/** The requested reasoning: off, on, or on with an effort. */
type ReasoningRequest = "off" | "on" | { effort: string };

export function adaptReasoning(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  // Clients send null to omit the field. A backend that does not document the field rejects any
  // value in it.
  if (out.get("thinking") === null) out.remove("thinking");
  const reasoningTraits = traits.reasoning;
  const { isSupported } = reasoningSupportOf(of.info, reasoningTraits);
  const reasoning: ReasoningTraits | undefined =
    isSupported === false ? { ...reasoningTraits, control: "none" } : reasoningTraits;
  if (!reasoning?.control) return;
  const thinking = asObject(out.get("thinking"));
  const effort = asText(out.get("reasoning_effort"));
  const wish = parseReasoningRequest(asText(thinking?.["type"]), effort);
  if (wish === undefined) return;
  if (wish === "off" && reasoning.canDisable === false)
    fail("unsupported", `Reasoning cannot be disabled for ${of.model}.`, {
      code: "thinking_always_on",
      param: thinking ? "thinking" : "reasoning_effort",
    });
  setReasoning(wish, reasoning, thinking, out, of);
}

function parseReasoningRequest(
  type: string | undefined,
  effort: string | undefined,
): ReasoningRequest | undefined {
  if (type === "disabled" || effort === "none") return "off";
  if (effort !== undefined) return { effort };
  return type === "enabled" ? "on" : undefined;
}

function setReasoning(
  wish: ReasoningRequest,
  traits: ReasoningTraits,
  thinking: JsonObject | undefined,
  out: Outgoing,
  of: CallContext,
): void {
  const on = wish !== "off";
  const effort = typeof wish === "object" ? supportedEffort(wish.effort, traits, of) : undefined;
  const { control } = traits;
  if (control !== "thinking.type") out.remove("thinking");
  if (control !== "effort") {
    if (on && traits.alsoAcceptsEffort) out.set("reasoning_effort", effort);
    else {
      out.remove("reasoning_effort");
      if (effort !== undefined && control !== "enable_thinking" && control !== "reasoning")
        of.reportLoss("reasoning_effort", control === "none" ? "dropped" : "approximated");
    }
  }
  switch (control) {
    case "effort":
      return out.set(
        "reasoning_effort",
        on ? (effort ?? traits.defaultEffort) : disabledEffort(traits, of),
      );
    case "thinking.type":
      return out.set("thinking", { ...thinking, type: on ? "enabled" : "disabled" });
    case "enable_thinking":
      out.set("enable_thinking", on);
      if (effort === undefined || traits.alsoAcceptsEffort) return;
      of.reportLoss("reasoning_effort", "approximated");
      return out.set(
        "thinking_budget",
        out.get("thinking_budget") ?? ownEntry(EFFORT_BUDGETS, effort) ?? MAX_BUDGET,
      );
    case "chat_template_kwargs":
      return out.set("chat_template_kwargs", {
        ...asObject(out.get("chat_template_kwargs")),
        [traits.templateKwarg ?? "enable_thinking"]: on,
      });
    case "reasoning.enabled":
      return out.set("reasoning", { ...asObject(out.get("reasoning")), enabled: on });
    case "reasoning":
      return out.set("reasoning", {
        ...asObject(out.get("reasoning")),
        ...(effort === undefined ? { enabled: on } : { effort }),
      });
    case "none":
      if (thinking && on) of.reportLoss("thinking", "dropped");
  }
}

/**
 * Returns the effort that disables reasoning. A model whose efforts do not include `none` gets its
 * lowest effort, and the approximation is reported.
 */
const disabledEffort = ({ efforts }: ReasoningTraits, of: CallContext): string | undefined => {
  if (!efforts || efforts.includes("none")) return "none";
  of.reportLoss("thinking", "approximated", "least_effort");
  return efforts[0];
};

function supportedEffort(effort: string, { efforts }: ReasoningTraits, of: CallContext): string {
  const effortName = nearestEffort(effort, efforts);
  if (effortName !== effort) of.reportLoss("reasoning_effort", "approximated");
  return effortName;
}
