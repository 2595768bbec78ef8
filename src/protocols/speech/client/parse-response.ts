// Parses a provider's response, which is raw audio or events that contain audio.
import { fail } from "../../../model/error.ts";
import type { HeadersIn } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asObject, parseObject, asText } from "../../json-values.ts";
import { usageOf } from "../usage.ts";
import type { Usage } from "../../../model/usage.ts";
import { bodyFormOf } from "../../../lib/media-type.ts";

export const isEvents = (headers: HeadersIn): boolean =>
  bodyFormOf(headers["content-type"]) === "stream";

export const failTruncated = (): never =>
  fail("upstream", "The provider's response ended before it was complete.", { code: "truncated" });

/** Throws because the response contained no audio. */
export const failNoAudio = (): never =>
  fail("upstream", "The provider returned no audio.", { code: "bad_answer" });

/**
 * Parses one event: a piece of audio, or the end with its usage. Unknown events return an empty
 * object. Throws if the event is an error.
 */
export function parseAudioEvent(data: string): { sound?: string; over?: Usage } {
  const event = parseObject(data);
  if (!event)
    return fail("upstream", "The provider sent an event that is not valid JSON.", {
      code: "bad_event",
    });
  if (event["error"] !== undefined && event["error"] !== null) return throwParsedError(event);
  switch (event["type"]) {
    case "error":
      return throwParsedError(event);
    case "speech.audio.delta":
      return { sound: asText(event["audio"]) ?? failNoAudio() };
    case "speech.audio.done":
      return { over: usageOf(asObject(event["usage"])) };
    default:
      return {};
  }
}
