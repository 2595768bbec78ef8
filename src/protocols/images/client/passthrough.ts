// Forwards responses in passthrough mode. Bytes are unchanged and images are not decoded. Only
// usage is read.
import { parseEventObject } from "../../parse-event-object.ts";
import { fail } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import type { Usage } from "../../../model/usage.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { parseNumber, asObject, asText } from "../../json-values.ts";
import {
  EventPassthrough,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
} from "../../sse/index.ts";
import { MAX_EVENT_BYTES, addUsage } from "./stream.ts";
import { streamErrorEvent } from "../server/fault.ts";
import type { ImageHead } from "../../sniff-image.ts";
import { imageHeadOf, createResponsePassthrough } from "./passthrough-response.ts";
import { parseTokenUsage, usageSeen } from "../usage.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? streamed(sink, to) : createResponsePassthrough(sink, to);

/** Event types of partial images, for generated and edited images. */
const PARTIAL: ReadonlySet<unknown> = new Set([
  "image_generation.partial_image",
  "image_edit.partial_image",
]);

function streamed(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  const out = createWriteBatch((b) => sink.write(b));
  const wanted = parseNumber(to.body["n"]) ?? 1;
  const seen: (ImageHead | undefined)[] = [];
  let usage: Usage | undefined;
  let over = false;

  const finish = (): void => {
    out.flush();
    over = true;
    sink.reportUsage(usage ? { type: "usage", usage } : usageSeen(undefined, seen));
    sink.reportFinish("stop");
  };
  const events = createEventSplitter((b, from, till) => {
    const bytes = b.subarray(from, till);
    const event = parseEventText(bytes);
    // Events after the end of the response are ignored.
    if (over && event && event.data !== "[DONE]") return;
    if (event && event.data !== "[DONE]") {
      // A partial image contains no usage.
      if (PARTIAL.has(event.event)) sink.reportContent();
      else completed(parseEventObject(event.data));
    }
    out.addRange(b, from, till);
  }, MAX_EVENT_BYTES);
  const completed = (parsedEvent: JsonObject): void => {
    if (parsedEvent["type"] === "error" || asObject(parsedEvent["error"])) {
      out.flush();
      throwParsedError(parsedEvent);
    }
    const picture = imageHeadOf(parsedEvent);
    if (!picture) return;
    sink.reportContent();
    if (asText(parsedEvent["type"])?.endsWith(".partial_image")) return;
    seen.push(...picture);
    usage = addUsage(usage, parseTokenUsage(asObject(parsedEvent["usage"])));
    if (!over && seen.length >= wanted) finish();
  };

  return new EventPassthrough({
    events,
    out,
    over: () => over,
    end: () => {
      if (seen.length === 0)
        fail("upstream", "The provider's stream ended before its image was complete.", {
          code: "truncated",
        });
      finish();
    },
    fail: (f) => sink.write(Buffer.from(streamErrorEvent(f, to))),
  });
}
