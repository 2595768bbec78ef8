// What a ranking is billed by: searches where the host counts them, else tokens.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { count, number, object, some } from "../json.ts";

export function usageOf({ meta, usage }: JsonObject): Usage {
  const said = object(meta);
  const searches = number(object(said?.["billed_units"])?.["search_units"]);
  if (searches !== undefined) return { searches };
  const counted = object(usage);
  const input =
    count(counted?.["total_tokens"]) ??
    count(counted?.["prompt_tokens"]) ??
    count(object(said?.["tokens"])?.["input_tokens"]);
  return input === undefined ? {} : { input };
}

/** The units that Cohere's clients read. */
export const metaTo = ({ searches, input }: Usage): JsonObject => ({
  api_version: { version: "2" },
  billed_units: some({ search_units: searches, input_tokens: input }) ?? {},
});

/** The tokens that Jina's and Voyage's do. */
export const tokensTo = ({ input = 0 }: Usage): JsonObject => ({ total_tokens: input });
