import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { parseExactJson } from "../../tool-arguments.ts";
import { parseEventText, createEventSplitter } from "../../sse/index.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { findErrorBody } from "./error-body.ts";
import type { GeminiReader } from "./reader.ts";

const CAP = BOUNDS.imageEvent.max;

/**
 * Events without a name and without a last one. What breaks in the middle is told in whatever form: as an event, as bare
 * JSON between events, or as one long list where the stream was no stream at all.
 */
export function createDecoder(reading: GeminiReader): Decoder {
  /** Since the last whole event. */
  let rest: Buffer[] = [];
  /** Bytes of the whole stream: that have come, that were split, and up to the end of the last event. */
  let came = 0;
  let split = 0;
  let reported = 0;
  const events = createEventSplitter((b, from, to) => {
    const bytes = b.subarray(from, to);
    split += bytes.length;
    const event = parseEventText(bytes);
    if (!event) return parseTextBetweenEvents(bytes.toString(), reading);
    reported = split;
    if (event.data !== "" && event.data !== "[DONE]") reading.chunk(parsed(event.data));
  }, CAP);
  return {
    push(chunk) {
      rest.push(chunk);
      const before = came;
      came += chunk.length;
      events.push(chunk);
      if (events.isBetweenEvents) rest = [];
      // A stream may be cut into chunks that never end where an event does.
      else if (reported > before) rest = [chunk.subarray(reported - before)];
    },
    end() {
      const left = Buffer.concat(rest).toString();
      events.end();
      parseTextBetweenEvents(left, reading);
      reading.end();
    },
  };
}

/** Text between events: a comment, half an event, or JSON that says what went wrong. */
function parseTextBetweenEvents(left: string, reading: GeminiReader): void {
  const at = left.search(/^[ \t]*[[{]/m);
  if (at < 0) return;
  let json: Json;
  try {
    json = parseExactJson(left.slice(at).trim());
  } catch {
    return;
  }
  if (findErrorBody(json)) throwParsedError(json);
  for (const chunk of Array.isArray(json) ? (json as readonly Json[]) : [json])
    reading.chunk(chunk);
}

function parsed(data: string): Json {
  try {
    return parseExactJson(data);
  } catch {
    return fail("upstream", "An event of the provider's stream is not JSON.", {
      code: "bad_stream",
    });
  }
}
