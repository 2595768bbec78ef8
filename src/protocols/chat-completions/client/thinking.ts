// How much to think, in the one way that a model understands. The documented fields are `thinking` and
// `reasoning_effort`; whatever else a client writes is between it and the model, and is left alone.
import { under } from "../../table.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, JsonObject, Outgoing } from "../../../plugin/index.ts";
import type { ChatTraits, ReasoningTraits } from "../dialect.ts";
import { BUDGETS, nearest, reasonsOf } from "../../reasons.ts";
import { object, text } from "../../json.ts";

/** Twice the most that an effort below it stands for. */
const MOST = 65_536;

const FIELDS: { readonly [control in NonNullable<ReasoningTraits["control"]>]: readonly string[] } =
  {
    effort: ["reasoning_effort"],
    "thinking.type": ["thinking"],
    enable_thinking: ["enable_thinking"],
    chat_template_kwargs: ["chat_template_kwargs"],
    "reasoning.enabled": ["reasoning"],
    reasoning: ["reasoning"],
    none: [],
  };

/** In which fields this backend documents that thinking is switched off. Of a model that is not known it is not known either. */
export function offFields(of: CallContext, { reasoning }: ChatTraits): readonly string[] {
  if (reasoning?.off === false) return [];
  if (reasoning?.control) return FIELDS[reasoning.control];
  return of.info.can?.reasoning === true ? FIELDS.effort : [];
}

/** What a request asks for: nothing, no thinking, thinking, or so much of it. */
type Wish = "off" | "on" | { effort: string };

export function think(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  // Not to ask is what clients mean by it, and a backend that does not document the field refuses any word there.
  if (out.get("thinking") === null) out.drop("thinking");
  const told = traits.reasoning;
  const { can } = reasonsOf(of.info, told);
  const reasoning: ReasoningTraits | undefined =
    can === false ? { ...told, control: "none" } : told;
  if (!reasoning?.control) return;
  const thinking = object(out.get("thinking"));
  const effort = text(out.get("reasoning_effort"));
  const wish = wishOf(text(thinking?.["type"]), effort);
  if (wish === undefined) return;
  if (wish === "off" && reasoning.off === false)
    fail("unsupported", `${of.model} always thinks: it cannot be switched off.`, {
      code: "thinking_always_on",
      param: thinking ? "thinking" : "reasoning_effort",
    });
  say(wish, reasoning, thinking, out, of);
}

function wishOf(type: string | undefined, effort: string | undefined): Wish | undefined {
  if (type === "disabled" || effort === "none") return "off";
  if (effort !== undefined) return { effort };
  return type === "enabled" ? "on" : undefined;
}

function say(
  wish: Wish,
  traits: ReasoningTraits,
  thinking: JsonObject | undefined,
  out: Outgoing,
  of: CallContext,
): void {
  const on = wish !== "off";
  const effort = typeof wish === "object" ? known(wish.effort, traits, of) : undefined;
  const { control } = traits;
  if (control !== "thinking.type") out.drop("thinking");
  if (control !== "effort") {
    if (on && traits.effortToo) out.set("reasoning_effort", effort);
    else {
      out.drop("reasoning_effort");
      if (effort !== undefined && control !== "enable_thinking" && control !== "reasoning")
        of.lose("reasoning_effort", control === "none" ? "dropped" : "approximated");
    }
  }
  switch (control) {
    case "effort":
      return out.set("reasoning_effort", on ? (effort ?? traits.on) : off(traits, of));
    case "thinking.type":
      return out.set("thinking", { ...thinking, type: on ? "enabled" : "disabled" });
    case "enable_thinking":
      out.set("enable_thinking", on);
      if (effort === undefined || traits.effortToo) return;
      of.lose("reasoning_effort", "approximated");
      return out.set(
        "thinking_budget",
        out.get("thinking_budget") ?? under(BUDGETS, effort) ?? MOST,
      );
    case "chat_template_kwargs":
      return out.set("chat_template_kwargs", {
        ...object(out.get("chat_template_kwargs")),
        [traits.key ?? "enable_thinking"]: on,
      });
    case "reasoning.enabled":
      return out.set("reasoning", { ...object(out.get("reasoning")), enabled: on });
    case "reasoning":
      return out.set("reasoning", {
        ...object(out.get("reasoning")),
        ...(effort === undefined ? { enabled: on } : { effort }),
      });
    case "none":
      if (thinking && on) of.lose("thinking", "dropped");
  }
}

/** A model whose efforts have no `none` but which need not think is told nothing. */
const off = ({ efforts }: ReasoningTraits, of: CallContext): string | undefined => {
  if (!efforts || efforts.includes("none")) return "none";
  of.lose("thinking", "approximated", "least_effort");
  return efforts[0];
};

function known(effort: string, { efforts }: ReasoningTraits, of: CallContext): string {
  const said = nearest(effort, efforts);
  if (said !== effort) of.lose("reasoning_effort", "approximated");
  return said;
}
