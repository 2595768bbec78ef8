// Lowers the output limit. The thinking budget is part of it, so thinking is reduced, or disabled
// if it no longer fits.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import { isObject } from "../../json-values.ts";

export function capOutput(out: Outgoing, tokens: number): void {
  const asked = out.get("max_tokens");
  if (typeof asked === "number" && asked <= tokens) return;
  out.set("max_tokens", tokens);
  const thinking = out.get("thinking");
  if (!isObject(thinking) || thinking["type"] !== "enabled") return;
  const { budget_tokens: budget } = thinking;
  if (typeof budget !== "number" || budget < tokens) return;
  out.set("thinking", tokens > 1024 ? { ...thinking, budget_tokens: 1024 } : { type: "disabled" });
}
