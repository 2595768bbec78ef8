// What an upstream's answer is: sound as it comes, or events that hold it.
import { fail } from "../../../model/error.ts";
import type { HeadersIn } from "../../../model/values.ts";
import { throwFailure } from "../../failure/failure.ts";
import { object, parsed, text } from "../../json.ts";
import { usageOf } from "../usage.ts";
import type { Usage } from "../../../model/usage.ts";
import { formOf } from "../../../lib/media.ts";

export const isEvents = (headers: HeadersIn): boolean =>
  formOf(headers["content-type"]) === "stream";

export const truncated = (): never =>
  fail("upstream", "The provider ended before its finish.", { code: "truncated" });

/** Nothing that can be heard came. */
export const silent = (): never =>
  fail("upstream", "The provider answered without sound.", { code: "bad_answer" });

/** One event: a piece of sound, the end with its counts, or what is newer than us. An error is thrown as what it says. */
export function heard(data: string): { sound?: string; over?: Usage } {
  const said = parsed(data);
  if (!said)
    return fail("upstream", "The provider sent an event that is no JSON.", { code: "bad_event" });
  if (said["error"] !== undefined && said["error"] !== null) return throwFailure(said);
  switch (said["type"]) {
    case "error":
      return throwFailure(said);
    case "speech.audio.delta":
      return { sound: text(said["audio"]) ?? silent() };
    case "speech.audio.done":
      return { over: usageOf(object(said["usage"])) };
    default:
      return {};
  }
}
