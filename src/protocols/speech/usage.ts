// Counts of what was read and of the sound that was made.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { count } from "../json.ts";

/** Nothing where nothing was counted. */
export function usageOf(said: Opt<JsonObject>): Usage {
  const input = count(said?.["input_tokens"]);
  const sound = count(said?.["output_tokens"]);
  return {
    ...(input !== undefined && { input }),
    ...(sound !== undefined && { audio_out: sound }),
  };
}

export function usageTo({ input = 0, audio_out = 0 }: Usage): JsonObject {
  return { input_tokens: input, output_tokens: audio_out, total_tokens: input + audio_out };
}
