// Limits the output tokens of an outgoing request. Thoughts count toward the limit.
import type { JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import { asObject } from "../../json-values.ts";

export function capOutput(out: Outgoing, tokens: number): void {
  const config = asObject(out.get("generationConfig")) ?? ({} as JsonObject);
  const asked = config["maxOutputTokens"];
  if (typeof asked === "number" && asked <= tokens) return;
  const thinking = asObject(config["thinkingConfig"]);
  const budget = thinking?.["thinkingBudget"];
  // A thinking budget that exceeds the limit would leave no tokens for the response.
  const starved = typeof budget === "number" && budget >= tokens;
  out.set("generationConfig", {
    ...config,
    maxOutputTokens: tokens,
    ...(starved && { thinkingConfig: { ...thinking, thinkingBudget: Math.floor(tokens / 2) } }),
  });
}
