// Limits the output tokens of an outgoing request, whatever limit the client set.
import type { Outgoing } from "../../../plugin/index.ts";
import { asNumber } from "../../json-values.ts";
import type { ChatDialect } from "../dialect.ts";

export function capOutput(out: Outgoing, tokens: number, dialect: ChatDialect): void {
  let bounded = false;
  for (const field of ["max_completion_tokens", "max_tokens"]) {
    const asked = asNumber(out.get(field));
    if (asked === undefined) continue;
    bounded = true;
    if (asked > tokens) out.set(field, tokens);
  }
  if (!bounded) out.set(dialect.maxTokens ?? "max_completion_tokens", tokens);
}
