// Forwards responses in passthrough mode. Bytes are unchanged and images are not decoded. Only
// usage is read.
import { fail } from "../../model/error.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import type { ResponseContext, PassthroughStream, PassthroughSink } from "../../plugin/protocol.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import { parseNumber, asObject, asText, asList, parseObject } from "../json-values.ts";
import { createResponsePassthrough } from "../passthrough.ts";
import { type ImageHead, sniffImage } from "../sniff-image.ts";
import {
  EventPassthrough,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  endOfValue,
  encodeKey,
  findValue,
  replaceModelName,
} from "../sse/index.ts";
import { parseEventObject } from "../sse/parse-event.ts";
import { MAX_EVENT_BYTES, addUsage } from "./client.ts";
import { streamErrorEvent, encodeFault } from "./server.ts";
import { parseTokenUsage, usageSeen } from "./spec.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? streamed(sink, to) : passResponse(sink, to);

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

/** Forwards a non-streaming response in passthrough mode. */

const USAGE = encodeKey("usage");

const DATA = encodeKey("data");

const passResponse = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  createResponsePassthrough(
    sink,
    (body) => {
      const from = body.indexOf(123);
      if (!isOneValue(body, from)) notJson();
      const counts = from < 0 ? undefined : findValue(body, [USAGE], from);
      const usage = counts && parseObject(body.toString("utf8", counts.from, counts.to));
      const data = from < 0 ? undefined : findValue(body, [DATA], from);
      // Image data is megabytes in size. It is parsed only if the usage report does not contain
      // tokens.
      if (parseTokenUsage(usage) && data && body[data.from] === 91)
        sink.reportUsage(usageSeen(usage, []));
      else sink.reportUsage(usageReport(body, usage));
      sink.reportContent();
      sink.reportFinish("stop");
      replaceModelName(body, to.model, (b) => sink.write(b));
    },
    (fault) => encodeFault(fault, to).body,
  );

/** Whether the body contains one complete JSON value and nothing after it. */
function isOneValue(body: Buffer, from: number): boolean {
  if (from < 0) return false;
  const end = endOfValue(body, from);
  return end >= 0 && body.toString("latin1", end).trim() === "";
}

const notJson = (): never =>
  fail("upstream", "The provider's response is not a JSON object.", { code: "bad_answer" });

function usageReport(body: Buffer, usage: JsonObject | undefined): ReturnType<typeof usageSeen> {
  const answer = parseObject(body.toString("utf8"));
  if (!answer) return notJson();
  if (asObject(answer["error"]) && !answer["data"]) throwParsedError(answer);
  const pictures = asList(answer["data"]).flatMap((item) => imageHeadOf(asObject(item)) ?? []);
  if (pictures.length === 0)
    fail("upstream", "The provider returned no image.", { code: "no_image" });
  return usageSeen(usage, pictures);
}

/**
 * Returns the header of an image. For a URL, the header is unknown. Returns undefined if the item
 * contains no image, as in translated mode.
 */
export function imageHeadOf(item: JsonObject | undefined): [ImageHead | undefined] | undefined {
  const base64 = asText(item?.["b64_json"]);
  if (base64) return [sniffImage({ base64 })];
  return asText(item?.["url"]) ? [undefined] : undefined;
}
