// Usage of transcriptions, in tokens or seconds. Backends report each in several ways.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount, asNumber, asObject } from "../json-values.ts";

/**
 * Returns the usage, or an empty object if nothing was reported. If seconds are reported, they are
 * billed and the tokens in the same report are ignored.
 */
export function usageOf(report: Opt<JsonObject>): Usage {
  const seconds = asNumber(report?.["seconds"]) ?? asNumber(report?.["prompt_audio_seconds"]);
  if (seconds !== undefined) return { seconds };
  const read = asCount(report?.["input_tokens"]);
  const output = asCount(report?.["output_tokens"]);
  if (read === undefined) return output === undefined ? {} : { output };
  const details = asObject(report?.["input_token_details"]);
  const words = asCount(details?.["text_tokens"]) ?? 0;
  return {
    input: words,
    // All input tokens that are not reported as text are audio.
    audio_in: Math.max(0, read - words),
    ...(output !== undefined && { output }),
  };
}

export function usageTo({ seconds, input, audio_in, output }: Usage): JsonObject | undefined {
  if (output === undefined)
    return seconds === undefined ? undefined : { type: "duration", seconds };
  const [words, heard] = [input ?? 0, audio_in ?? 0];
  return {
    type: "tokens",
    input_tokens: words + heard,
    input_token_details: { text_tokens: words, audio_tokens: heard },
    output_tokens: output,
    total_tokens: words + heard + output,
  };
}
