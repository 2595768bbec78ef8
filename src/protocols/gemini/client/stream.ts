import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { exactly } from "../../arguments.ts";
import { eventOf, frames } from "../../sse/index.ts";
import { throwFailure } from "../../failure/failure.ts";
import { errorIn } from "./error-in.ts";
import type { GeminiReader } from "./reader.ts";

const CAP = BOUNDS.pictureEvent.most;

/**
 * Events without a name and without a last one. What breaks in the middle is told in whatever form: as an event, as bare
 * JSON between events, or as one long list where the stream was no stream at all.
 */
export function stream(reading: GeminiReader): Decoder {
  /** Since the last whole event. */
  let rest: Buffer[] = [];
  /** Bytes of the whole stream: that have come, that were split, and up to the end of the last event. */
  let came = 0;
  let split = 0;
  let told = 0;
  const events = frames((b, from, to) => {
    const bytes = b.subarray(from, to);
    split += bytes.length;
    const event = eventOf(bytes);
    if (!event) return stray(bytes.toString(), reading);
    told = split;
    if (event.data !== "" && event.data !== "[DONE]") reading.chunk(parsed(event.data));
  }, CAP);
  return {
    push(chunk) {
      rest.push(chunk);
      const before = came;
      came += chunk.length;
      events.push(chunk);
      if (events.between) rest = [];
      // A stream may be cut into chunks that never end where an event does.
      else if (told > before) rest = [chunk.subarray(told - before)];
    },
    end() {
      const left = Buffer.concat(rest).toString();
      events.end();
      stray(left, reading);
      reading.end();
    },
  };
}

/** Text between events: a comment, half an event, or JSON that says what went wrong. */
function stray(left: string, reading: GeminiReader): void {
  const at = left.search(/^[ \t]*[[{]/m);
  if (at < 0) return;
  let json: Json;
  try {
    json = exactly(left.slice(at).trim());
  } catch {
    return;
  }
  if (errorIn(json)) throwFailure(json);
  for (const chunk of Array.isArray(json) ? (json as readonly Json[]) : [json])
    reading.chunk(chunk);
}

function parsed(data: string): Json {
  try {
    return exactly(data);
  } catch {
    return fail("upstream", "An event of the provider's stream is not JSON.", {
      code: "bad_stream",
    });
  }
}
