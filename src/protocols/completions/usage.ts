// Counts, as this wire says them: as chat completions do.
import type { Usage } from "../../model/usage.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { count, object, present } from "../json.ts";

/** Nothing where nothing was counted. */
export function usageOf(said: Opt<JsonObject>): Usage {
  const read = count(said?.["prompt_tokens"]);
  const cached = count(object(said?.["prompt_tokens_details"])?.["cached_tokens"]);
  return present({
    input: read === undefined ? undefined : Math.max(0, read - (cached ?? 0)),
    cache_read: cached,
    output: count(said?.["completion_tokens"]),
  });
}

export function usageTo(u: Usage): JsonObject {
  const [read, written] = [inputTokens(u), outputTokens(u)];
  return { prompt_tokens: read, completion_tokens: written, total_tokens: read + written };
}
