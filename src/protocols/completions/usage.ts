// Converts token counts, which have the same form as in chat completions.
import type { Usage } from "../../model/usage.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount, asObject, omitUndefined } from "../json-values.ts";

/** Returns the canonical usage. Counts that were not reported are omitted. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const read = asCount(report?.["prompt_tokens"]);
  const cached = asCount(asObject(report?.["prompt_tokens_details"])?.["cached_tokens"]);
  return omitUndefined({
    input: read === undefined ? undefined : Math.max(0, read - (cached ?? 0)),
    cache_read: cached,
    output: asCount(report?.["completion_tokens"]),
  });
}

export function usageTo(u: Usage): JsonObject {
  const [read, written] = [inputTokens(u), outputTokens(u)];
  return { prompt_tokens: read, completion_tokens: written, total_tokens: read + written };
}
