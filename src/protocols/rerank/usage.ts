// Usage of a ranking: search units if the backend reports them, else tokens.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { asCount, asNumber, asObject, omitUndefinedOrNothing } from "../json-values.ts";

export function usageOf({ meta, usage }: JsonObject): Usage {
  const billing = asObject(meta);
  const searches = asNumber(asObject(billing?.["billed_units"])?.["search_units"]);
  if (searches !== undefined) return { searches };
  const counted = asObject(usage);
  const input =
    asCount(counted?.["total_tokens"]) ??
    asCount(counted?.["prompt_tokens"]) ??
    asCount(asObject(billing?.["tokens"])?.["input_tokens"]);
  return input === undefined ? {} : { input };
}

/** Returns the units that Cohere's clients read. */
export const metaTo = ({ searches, input }: Usage): JsonObject => ({
  api_version: { version: "2" },
  billed_units: omitUndefinedOrNothing({ search_units: searches, input_tokens: input }) ?? {},
});

/** Returns the token count that the clients of Jina and Voyage read. */
export const tokensTo = ({ input = 0 }: Usage): JsonObject => ({ total_tokens: input });
