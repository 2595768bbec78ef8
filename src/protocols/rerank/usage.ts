// What a ranking is billed by: searches where the host counts them, else tokens.
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

/** The units that Cohere's clients read. */
export const metaTo = ({ searches, input }: Usage): JsonObject => ({
  api_version: { version: "2" },
  billed_units: omitUndefinedOrNothing({ search_units: searches, input_tokens: input }) ?? {},
});

/** The tokens that Jina's and Voyage's do. */
export const tokensTo = ({ input = 0 }: Usage): JsonObject => ({ total_tokens: input });
