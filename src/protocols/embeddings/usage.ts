// Converts token counts. Backends use one of two names, and some use both.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount } from "../json-values.ts";

/** Returns the canonical usage. Counts that were not reported are omitted. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const input = asCount(report?.["prompt_tokens"] ?? report?.["total_tokens"]);
  return input === undefined ? {} : { input };
}

export const usageTo = ({ input = 0 }: Usage): JsonObject => ({
  prompt_tokens: input,
  total_tokens: input,
});
