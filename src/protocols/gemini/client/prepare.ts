// The last look of this protocol at a request before it leaves.
import type { JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/call.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asksThought } from "../../spending.ts";
import { refuseKept } from "../../look/index.ts";
import { object } from "../../json.ts";

/** What an account keeps is there for whoever has its key, and all clients here share ours. */
export const prepare = (out: Outgoing, of: CallContext): void =>
  refuseKept(out, of.state, { code: "state_unsupported" });

/** What is told of thoughts is a digest. */
export const thinks = (out: Outgoing): boolean => asksThought((field) => out.get(field)) !== "off";

/** The output's bound; thoughts lie inside it. */
export function cap(out: Outgoing, tokens: number): void {
  const config = object(out.get("generationConfig")) ?? ({} as JsonObject);
  const asked = config["maxOutputTokens"];
  if (typeof asked === "number" && asked <= tokens) return;
  const thinking = object(config["thinkingConfig"]);
  const budget = thinking?.["thinkingBudget"];
  // More to think with than there is at all leaves no answer.
  const starved = typeof budget === "number" && budget >= tokens;
  out.set("generationConfig", {
    ...config,
    maxOutputTokens: tokens,
    ...(starved && { thinkingConfig: { ...thinking, thinkingBudget: Math.floor(tokens / 2) } }),
  });
}
