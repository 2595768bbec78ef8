// How much to think, in the words of this wire and of the model at hand.
import { fail } from "../../../model/error.ts";
import type { Reasoning } from "../../../model/request.ts";
import type { CallContext, ChatRequest, Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { effortFor, nearest, type Reasons } from "../../reasons.ts";
import type { PartContext } from "../parts.ts";
import { present } from "../../json.ts";
import { ORIGIN } from "../words.ts";

export function thinking(
  { reasoning: r, ext }: ChatRequest,
  reasons: Reasons,
  of: CallContext,
  style: Opt<Json>,
  own: JsonObject | undefined,
  losses: PartContext,
): JsonObject | undefined {
  const native = ext[ORIGIN] !== undefined;
  if (!native && reasons.can === false) {
    if (r.mode === "effort" || r.mode === "budget") losses.lose("reasoning", "dropped");
    return undefined;
  }
  const effort = native && r.mode !== "budget" ? spoken(r) : effortTo(r, reasons, of, losses);
  if (r.mode === "off" && effort === undefined) return undefined;
  const summary = r.show === "summary" || r.show === "full" ? (style ?? "auto") : undefined;
  const said = present({ effort, summary, ...own });
  return Object.keys(said).length > 0 ? said : undefined;
}

/** Its own protocol's word, which is between the client and the model. */
const spoken = ({ mode, effort }: Reasoning): string | undefined =>
  mode === "off" ? "none" : effort;

function effortTo(
  r: Reasoning,
  reasons: Reasons,
  of: CallContext,
  losses: PartContext,
): string | undefined {
  switch (r.mode) {
    case "off":
      return switchedOff(reasons, of, losses);
    case "budget":
      losses.lose("thinking.budget_tokens", "approximated");
      return nearest(effortFor(r.budget ?? 0), reasons.efforts);
    default: {
      if (r.effort === undefined) return undefined;
      const effort = nearest(r.effort, reasons.efforts);
      if (effort !== r.effort) losses.lose("reasoning.effort", "approximated");
      return effort;
    }
  }
}

export const ENCRYPTED = "reasoning.encrypted_content";

/** Asked of a model that does not reason, it is an error; not asked of one that does, the next turn has lost its thread. */
export const mayReason = ({ can }: Reasons, asked: boolean): boolean => can ?? asked;

function switchedOff(
  { can, off, efforts }: Reasons,
  of: CallContext,
  losses: PartContext,
): string | undefined {
  // Thinking all the same would be billed to a client that said no.
  if (off === false)
    fail("unsupported", `${of.model} always thinks: it cannot be switched off.`, {
      code: "thinking_always_on",
      param: "reasoning",
    });
  if (off === true || (can === true && !efforts)) return "none";
  // A model that may not know the word answers it with an error: then it had better reason than fail.
  losses.lose("reasoning", "approximated", efforts ? "least_effort" : "reasoning_left_on");
  return efforts?.[0];
}
