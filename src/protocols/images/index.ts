import type { JSONSchema } from "json-schema-to-ts";
import { imageOperation } from "../../model/operations/image-operation.ts";
import editsSchema from "../../../schemas/image-edits.request.json" with { type: "json" };
import schema from "../../../schemas/images.request.json" with { type: "json" };
import type {
  CallContext,
  Protocol,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../plugin/protocol.ts";
import { operationProtocol } from "../operation-protocol.ts";
import * as client from "./client.ts";
import { MAX_EVENT_BYTES, addUsage } from "./client.ts";
import * as server from "./server.ts";
import { streamErrorEvent, encodeFault } from "./server.ts";
import {
  analyze,
  EDITS,
  ID,
  type ImageDialect,
  knowsField,
  traitsOf,
  ZDR_ALLOWED_FIELDS,
  parseTokenUsage,
  usageSeen,
} from "./spec.ts";
import { fail, type Fault } from "../../model/error.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
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
import { parseEventObject } from "../sse/event-splitter.ts";

export { requireSupported, ratioOf, sizeOf, type Size, type ImageParameters } from "./size.ts";
export type { ImageDialect, ImageTraits } from "./spec.ts";
export { formatOf, sniffImage, type ImageHead } from "../sniff-image.ts";

export const images = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const at = (of: CallContext) => traitsOf(dialect, of.model);
  return operationProtocol({
    id: ID,
    operationSpec: imageOperation,
    zdrAllowedFields: ZDR_ALLOWED_FIELDS,
    analyze,
    server: {
      schema,
      decodeRequest: (body) => server.decodeRequest(body, false),
      createEncoder: (write, to) => server.createEncoder(write, to),
      encodeResponse: server.encodeResponse,
      encodeFault: server.encodeFault,
      ping: ": ping\n\n",
    },
    client: {
      paths: {
        generate: "/images/generations",
        ...(dialect.edits && { [EDITS]: "/images/edits" }),
      },
      encodeRequest: (r, of) => client.encodeRequest(r, of),
      knowsField,
      createDecoder: client.createDecoder,
      decodeResponse: client.decodeResponse,
      prepare: (out, of) => client.prepare(out, of, at(of)),
      // If the backend returns only URLs, the gateway must fetch the bytes that a client requests.
      // Passthrough mode is then not available.
      ...(dialect.responseFormat !== "url" && { createPassthrough }),
    },
  });
};

/**
 * The protocol for editing input images, sent as a form or as JSON, with its own stream events. Its
 * routes use the action `edits`.
 */
export const imageEdits = (): Protocol<"image"> => {
  const made = images();
  return {
    ...made,
    server: {
      ...made.server!,
      schema: editsSchema as unknown as JSONSchema,
      decodeRequest: (body) => server.decodeRequest(body, true),
      createEncoder: (write, to) => server.createEncoder(write, to, "image_edit"),
    },
  };
};

/**
 * xAI's protocol for editing images. It has the same path, but accepts only JSON and has different
 * field names.
 */
export const xaiImageEdits = (dialect: ImageDialect = {}): Protocol<"image"> => {
  const { server: _server, client: half, ...of } = images(dialect);
  const { createPassthrough: _, ...rest } = half!;
  return {
    ...of,
    id: "xai-edits",
    client: {
      ...rest,
      paths: { generate: "/images/edits", [EDITS]: "/images/edits" },
      encodeRequest: (r, of) => client.encodeRequest(r, of, client.toXaiFields),
    },
  };
};

// Forwards responses in passthrough mode. Bytes are unchanged and images are not decoded. Only
// usage is read.

const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
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
