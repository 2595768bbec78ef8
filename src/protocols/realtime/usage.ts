// Converts usage reports. In this protocol, cached tokens are part of the input tokens, and both
// are split into text, audio, and images. Canonical units do not overlap.
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { asCount, asNumber, asObject } from "../json-values.ts";

/** Usage of a response, and whether the provider split the input and output into types. */
export interface ResponseUsage {
  readonly usage: Usage;
  /**
   * Whether the counts are split into text, audio, and images. Otherwise all tokens count as text,
   * and the caller has to estimate the types.
   */
  readonly isSplit: boolean;
}

/** Returns the usage of a `response.done` event. Undefined: the provider reported none. */
export function readResponseUsage(report: JsonObject | undefined): ResponseUsage | undefined {
  const input = asCount(report?.["input_tokens"]);
  const output = asCount(report?.["output_tokens"]);
  if (!report || input === undefined || output === undefined) return undefined;
  const read = asObject(report["input_token_details"]);
  const made = asObject(report["output_token_details"]);
  const audio = countAtMost(read?.["audio_tokens"], input);
  const image = countAtMost(read?.["image_tokens"], input - audio);
  const text = input - audio - image;
  const cached = countAtMost(read?.["cached_tokens"], input);
  const details = asObject(read?.["cached_tokens_details"]);
  const cachedImage = countAtMost(details?.["image_tokens"], Math.min(image, cached));
  const detailedText = countAtMost(details?.["text_tokens"], text);
  const cachedAudio = countAtMost(
    // If a report has no details, cached tokens are assumed to be mostly text, because instructions
    // and tools come first.
    details ? details["audio_tokens"] : Math.max(0, cached - text),
    Math.min(audio, cached - cachedImage),
  );
  const cachedText = Math.min(text, Math.max(detailedText, cached - cachedAudio - cachedImage));
  const spoken = countAtMost(made?.["audio_tokens"], output);
  return {
    usage: {
      input: text - cachedText,
      cache_read: cachedText,
      output: output - spoken,
      ...(audio > cachedAudio && { audio_in: audio - cachedAudio }),
      ...(cachedAudio > 0 && { cache_read_audio: cachedAudio }),
      ...(image > cachedImage && { image_in: image - cachedImage }),
      ...(cachedImage > 0 && { cache_read_image: cachedImage }),
      ...(spoken > 0 && { audio_out: spoken }),
    },
    isSplit: (read !== undefined || input === 0) && (made !== undefined || output === 0),
  };
}

/** Returns the usage of a finished transcription: tokens or seconds. */
export function readTranscriptionUsage(report: JsonObject | undefined): Usage | undefined {
  const seconds = asNumber(report?.["seconds"]);
  if (seconds !== undefined && seconds >= 0) return { seconds };
  const input = asCount(report?.["input_tokens"]);
  const output = asCount(report?.["output_tokens"]);
  if (!report || input === undefined || output === undefined) return undefined;
  const details = asObject(report["input_token_details"]);
  const audio = details ? countAtMost(details["audio_tokens"], input) : input;
  return { input: input - audio, audio_in: audio, output };
}

const countAtMost = (count: unknown, max: number): number =>
  Math.max(0, Math.min(asCount(count) ?? 0, max));
