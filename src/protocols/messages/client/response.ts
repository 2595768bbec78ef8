// Decodes a provider's response, in one piece or as a stream, and its token counts.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { isObject } from "../../json-values.ts";
import { MessagesReader } from "./reader.ts";
import { startUsage } from "../usage.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { parseEventObject } from "../../sse/event-splitter.ts";
import { parseExactJson } from "../../tool-calls.ts";

export function decodeResponse(
  body: Buffer,
  emit: (event: ModelEvent) => void,
  signer: string,
): void {
  const message = parseMessage(body);
  const reading = new MessagesReader(emit, signer);
  reading.start(message);
  for (const [i, block] of (message["content"] as readonly Json[]).entries()) {
    if (!isObject(block)) continue;
    reading.open(i, block);
    reading.stop(i);
  }
  reading.finish();
}

/** Parses a message. Throws if a response with status 200 is not a message. */
export function parseMessage(body: Buffer): JsonObject {
  let message: unknown;
  try {
    message = parseExactJson(body.toString());
  } catch {
    message = undefined;
  }
  if (!isObject(message))
    return fail("upstream", "The provider's response is not JSON.", { code: "bad_answer" });
  if (message["type"] === "error" || message["error"]) return throwParsedError(message);
  if (!Array.isArray(message["content"]))
    return fail("upstream", "The provider's response has no content.", { code: "bad_answer" });
  return message;
}

/**
 * Maximum size of one event, in bytes. A fetched document is sent in one event, and so in one line.
 */
export const MAX_EVENT_BYTES = BOUNDS.largeEvent.max;

export function createDecoder(emit: (event: ModelEvent) => void, signer: string): Decoder {
  const reading = new MessagesReader(emit, signer);
  const events = createEventDecoder(
    (name, data) => {
      if (reading.isFinished) return;
      // Some backends of this protocol end a stream with the marker of another protocol.
      if (data === "[DONE]") return reading.end();
      const event = parseEventObject(data);
      switch (event["type"] ?? name) {
        case "message_start":
          return reading.start(startEventUsage(event));
        case "content_block_start":
          return reading.open(event["index"], object(event, "content_block"));
        case "content_block_delta":
          return reading.delta(event["index"], object(event, "delta"));
        case "content_block_stop":
          return reading.stop(event["index"]);
        case "message_delta":
          if (isObject(event["delta"])) reading.ending(event["delta"]);
          return reading.count(event["usage"]);
        case "message_stop":
          return reading.finish();
        case "error":
          return throwParsedError(event);
        default:
          if (event["error"]) throwParsedError(event);
      }
    },
    { maxLineBytes: MAX_EVENT_BYTES, maxEventBytes: MAX_EVENT_BYTES },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      reading.end();
    },
  };
}

/** Returns the message of `message_start` without its output count, which is only a placeholder. */
function startEventUsage(event: JsonObject): JsonObject {
  const message = object(event, "message");
  return isObject(message["usage"]) ? { ...message, usage: startUsage(message["usage"]) } : message;
}

const object = (event: JsonObject, field: string): JsonObject => {
  const value = event[field];
  return isObject(value)
    ? value
    : fail("upstream", `An event of the provider's stream lacks its ${field}.`, {
        code: "bad_stream",
      });
};

/** Decodes the response of `count_tokens`. */
export function decodeCount(body: Buffer): number {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    json = undefined;
  }
  const tokens = isObject(json) ? json["input_tokens"] : undefined;
  return typeof tokens === "number"
    ? tokens
    : fail("upstream", "The provider's token count is not a number.", { code: "bad_answer" });
}
