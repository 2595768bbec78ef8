// Usage of speech: input tokens and audio output tokens.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount } from "../json-values.ts";

/** Returns the usage, or an empty object if nothing was reported. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const input = asCount(report?.["input_tokens"]);
  const sound = asCount(report?.["output_tokens"]);
  return {
    ...(input !== undefined && { input }),
    ...(sound !== undefined && { audio_out: sound }),
  };
}

export function usageTo({ input = 0, audio_out = 0 }: Usage): JsonObject {
  return { input_tokens: input, output_tokens: audio_out, total_tokens: input + audio_out };
}
