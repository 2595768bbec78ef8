// Forwards responses in passthrough mode. Bytes are unchanged and images are not decoded. Only
// usage is read.
import { fail, type Fault } from "../../model/error.ts";
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
  to.stream ? new ImagePassthrough(sink, to) : passResponse(sink, to);

/** Event types of partial images, for generated and edited images. */
const PARTIAL: ReadonlySet<unknown> = new Set([
  "image_generation.partial_image",
  "image_edit.partial_image",
]);

class ImagePassthrough extends EventPassthrough {
  readonly #to: ResponseContext;
  readonly #wanted: number;
  readonly #seen: (ImageHead | undefined)[] = [];
  #usage: Usage | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink, MAX_EVENT_BYTES);
    this.#to = to;
    this.#wanted = parseNumber(to.body["n"]) ?? 1;
  }

  protected onEvent(b: Buffer, from: number, to: number): void {
    const event = parseEventText(b.subarray(from, to));
    if (event && event.data !== "[DONE]") {
      // Events after the end of the response are ignored.
      if (this.isOver) return;
      // A partial image contains no usage.
      if (PARTIAL.has(event.event)) this.sink.reportContent();
      else this.#read(parseEventObject(event.data));
    }
    this.out.addRange(b, from, to);
  }

  protected onEnd(): void {
    if (this.#seen.length === 0)
      fail("upstream", "The provider's stream ended before its image was complete.", {
        code: "truncated",
      });
    this.#finish();
  }

  writeFault(fault: Fault): void {
    this.sink.write(Buffer.from(streamErrorEvent(fault, this.#to)));
  }

  #read(event: JsonObject): void {
    if (event["type"] === "error" || asObject(event["error"])) {
      this.out.flush();
      throwParsedError(event);
    }
    const picture = imageHeadOf(event);
    if (!picture) return;
    this.sink.reportContent();
    if (asText(event["type"])?.endsWith(".partial_image")) return;
    this.#seen.push(...picture);
    this.#usage = addUsage(this.#usage, parseTokenUsage(asObject(event["usage"])));
    if (this.#seen.length >= this.#wanted) this.#finish();
  }

  #finish(): void {
    this.out.flush();
    this.isOver = true;
    this.sink.reportUsage(
      this.#usage ? { type: "usage", usage: this.#usage } : usageSeen(undefined, this.#seen),
    );
    this.sink.reportFinish("stop");
  }
}

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
function imageHeadOf(item: JsonObject | undefined): [ImageHead | undefined] | undefined {
  const base64 = asText(item?.["b64_json"]);
  if (base64) return [sniffImage({ base64 })];
  return asText(item?.["url"]) ? [undefined] : undefined;
}
