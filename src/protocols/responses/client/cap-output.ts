// Lowers the output limit to the amount that the caller can pay for.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import { asNumber } from "../../json-values.ts";

export function capOutput(out: Outgoing, tokens: number): void {
  const asked = asNumber(out.get("max_output_tokens"));
  if (asked === undefined || asked > tokens) out.set("max_output_tokens", tokens);
}
