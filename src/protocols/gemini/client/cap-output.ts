// The output's bound; thoughts lie inside it.
import type { JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import { asObject } from "../../json-values.ts";

export function capOutput(out: Outgoing, tokens: number): void {
  const config = asObject(out.get("generationConfig")) ?? ({} as JsonObject);
  const asked = config["maxOutputTokens"];
  if (typeof asked === "number" && asked <= tokens) return;
  const thinking = asObject(config["thinkingConfig"]);
  const budget = thinking?.["thinkingBudget"];
  // More to think with than there is at all leaves no answer.
  const starved = typeof budget === "number" && budget >= tokens;
  out.set("generationConfig", {
    ...config,
    maxOutputTokens: tokens,
    ...(starved && { thinkingConfig: { ...thinking, thinkingBudget: Math.floor(tokens / 2) } }),
  });
}
