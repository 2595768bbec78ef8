// Decodes a Converse stream: binary frames that contain events or exceptions. Usage follows the
// stop reason, so the response is finished only at the end of the stream.
import { fail, type Decoder, type JsonObject } from "tollgate/plugin";
import { createFrameReader, type EventFrame } from "../event-stream.ts";
import { objectOf, parsed, textOf } from "../json.ts";
import { parseAwsStreamError } from "../errors.ts";
import type { ConverseReader } from "./reader.ts";

export function createDecoder(reading: ConverseReader): Decoder {
  const frames = createFrameReader((frame) => event(frame, reading));
  return {
    push: (chunk) => frames.push(chunk),
    end() {
      frames.end();
      reading.end();
    },
  };
}

function event(frame: EventFrame, reading: ConverseReader): void {
  const name = nameIn(frame);
  const payload = jsonIn(frame.payload);
  const at = payload["contentBlockIndex"];
  switch (name) {
    case "messageStart":
      return reading.start();
    case "contentBlockStart":
      return reading.begin(at, objectOf(payload["start"]) ?? {});
    case "contentBlockDelta":
      return reading.delta(at, objectOf(payload["delta"]) ?? {});
    case "contentBlockStop":
      return reading.close(at);
    case "messageStop":
      return reading.setStopReason(textOf(payload["stopReason"]) ?? "");
    case "metadata":
      return reading.count(payload);
  }
}

/** Returns the name of an event. Throws if the frame is an exception. */
export function nameIn({ headers, payload }: EventFrame): string | undefined {
  const type = headers.get(":message-type");
  if (type === "event") return headers.get(":event-type");
  const name = headers.get(type === "exception" ? ":exception-type" : ":error-code") ?? "";
  const words = headers.get(":error-message");
  const body = words === undefined ? payload : Buffer.from(JSON.stringify({ message: words }));
  const { kind, message, ...more } = parseAwsStreamError(name, body);
  return fail(kind, message, more);
}

const jsonIn = (payload: Buffer): JsonObject =>
  parsed(payload) ??
  fail("upstream", "An event of the provider's stream is not valid JSON.", { code: "bad_stream" });
