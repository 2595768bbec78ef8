// How much to think, in the one way that a model understands. The documented fields are `thinking` and
// `reasoning_effort`; whatever else a client writes is between it and the model, and is left alone.
import { ownEntry } from "../../own-entry.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, JsonObject, Outgoing } from "../../../plugin/index.ts";
import type { ChatTraits, ReasoningTraits } from "../dialect.ts";
import { EFFORT_BUDGETS, nearestEffort, reasoningSupportOf } from "../../reasoning-support.ts";
import { asObject, asText } from "../../json-values.ts";

/** Twice the most that an effort below it stands for. */
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

/** In which fields this backend documents that thinking is switched off. Of a model that is not known it is not known either. */
export function reasoningOffFields(of: CallContext, { reasoning }: ChatTraits): readonly string[] {
  if (reasoning?.canDisable === false) return [];
  if (reasoning?.control) return CONTROL_FIELDS[reasoning.control];
  return of.info.can?.reasoning === true ? CONTROL_FIELDS.effort : [];
}

/** What a request asks for: nothing, no thinking, thinking, or so much of it. */
type ReasoningRequest = "off" | "on" | { effort: string };

export function adaptReasoning(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  // Not to ask is what clients mean by it, and a backend that does not document the field refuses any word there.
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
    fail("unsupported", `${of.model} always thinks: it cannot be switched off.`, {
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

/** A model whose efforts have no `none` but which need not think is told nothing. */
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
