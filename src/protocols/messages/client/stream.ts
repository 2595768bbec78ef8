import { BOUNDS } from "../../../lib/bounds.ts";
import { parseEventObject } from "../../parse-event-object.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { startUsage } from "../usage.ts";
import { isObject } from "../../json-values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { MessagesReader } from "./reader.ts";

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
