// Decodes a provider's response, in one piece or as a stream, and its token counts.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { Json } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { findErrorBody } from "./usage-tap.ts";
import type { GeminiReader } from "./reader.ts";
import { asObject } from "../../json-values.ts";
import { parseEventText, createEventSplitter } from "../../sse/index.ts";
import { parseExactJson } from "../../tool-calls.ts";

/** Decodes a non-streaming response. A server that streams nevertheless sends a list of chunks. */
export function decodeResponse(body: Buffer, reading: GeminiReader): void {
  const answer = parsed(body);
  for (const chunk of Array.isArray(answer) ? (answer as readonly Json[]) : [answer])
    reading.chunk(chunk);
  reading.end();
}

export function parsed(body: Buffer): Json {
  try {
    return parseExactJson(body.toString());
  } catch {
    return fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  }
}

const CAP = BOUNDS.imageEvent.max;

/**
 * Creates a decoder for a stream. Its events have no name, and there is no terminal event. An error
 * in the middle can have any form: an event, bare JSON between events, or one long list in place of
 * a stream.
 */
export function createDecoder(reading: GeminiReader): Decoder {
  /** Bytes since the last complete event. */
  let rest: Buffer[] = [];
  /**
   * Byte counts of the whole stream: `came` is the number received, `split` the number split into
   * events, and `reported` the end of the last event.
   */
  let came = 0;
  let split = 0;
  let reported = 0;
  const events = createEventSplitter((b, from, to) => {
    const bytes = b.subarray(from, to);
    split += bytes.length;
    const event = parseEventText(bytes);
    if (!event) return parseTextBetweenEvents(bytes.toString(), reading);
    reported = split;
    if (event.data !== "" && event.data !== "[DONE]") reading.chunk(parseStreamJson(event.data));
  }, CAP);
  return {
    push(chunk) {
      rest.push(chunk);
      const before = came;
      came += chunk.length;
      events.push(chunk);
      if (events.isBetweenEvents) rest = [];
      // A stream may be cut into chunks that never end at an event boundary.
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

/** Parses text between events: a comment, half an event, or JSON that describes an error. */
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

export function parseStreamJson(data: string): Json {
  try {
    return parseExactJson(data);
  } catch {
    return fail("upstream", "The provider's stream contains an event that is not valid JSON.", {
      code: "bad_stream",
    });
  }
}

/** Decodes the response of `countTokens`. */
export function decodeCount(body: Buffer): number {
  const tokens = asObject(parsed(body))?.["totalTokens"];
  // An empty prompt has no tokens, and this protocol omits a zero.
  if (tokens === undefined && asObject(parsed(body))) return 0;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's token count is not a number.", { code: "bad_answer" });
}
