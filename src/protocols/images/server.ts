// The half of the images protocol that faces clients.
import { fail, type Fault } from "../../model/error.ts";
import type { ModelResponse, ModelEvent } from "../../model/event.ts";
import type { ImageRequest, Media } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import { isFilePart, type Body, type JsonObject, type Opt } from "../../model/values.ts";
import type { ResponseContext, Encoder, ErrorResponse } from "../../plugin/protocol.ts";
import { COMMON_FIELDS, ID, PROTOCOL_FIELDS, IMAGE_FIELDS, usageTo } from "./spec.ts";
import { isTruthyFlag, parseNumber, omitUndefined, asText, asObject } from "../json-values.ts";
import { parseMediaUrl, toBase64, toDataUrl } from "../media-url.ts";
import { encodeFault as refusal } from "../failure/openai-error.ts";
import { sniffImage, formatOf, mimeOf } from "../sniff-image.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";

/**
 * Decodes a request.
 *
 * @param edits Whether the route edits images. On other routes, the image fields belong to a
 *   backend's own extension.
 */
export function decodeRequest(body: Body, edits: boolean): ImageRequest {
  // A file in an unknown field can be sent only in this protocol, because no other protocol uses
  // forms.
  const isOwn = (field: string) =>
    PROTOCOL_FIELDS.includes(field) || [body[field]].flat().some(isFilePart);
  const known = (field: string) =>
    COMMON_FIELDS.includes(field) || (edits && IMAGE_FIELDS.includes(field));
  const own = picked(body, (field) => !known(field) && isOwn(field));
  return omitUndefined({
    operation: "image" as const,
    model: asText(body["model"]) ?? "",
    prompt: asText(body["prompt"]) ?? "",
    stream: isTruthyFlag(body["stream"]),
    n: parseNumber(body["n"]) ?? 1,
    inputImages: edits ? parseInputImages(body) : [],
    mask: edits ? parseMask(body) : undefined,
    responseFormat: body["response_format"] === "url" ? ("url" as const) : ("bytes" as const),
    size: asText(body["size"]),
    quality: asText(body["quality"]),
    background: asText(body["background"]),
    format: asText(body["output_format"]),
    compression: parseNumber(body["output_compression"]),
    seed: parseNumber(body["seed"]),
    partialImages: parseNumber(body["partial_images"]),
    user: asText(body["user"]),
    rest: picked(body, (field) => !known(field) && !isOwn(field)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** Returns the selected fields. All SDKs of this protocol treat null as an omitted field. */
function picked(body: Body, wanted: (field: string) => boolean): JsonObject {
  return unknownTopLevelFields(body, (field) => body[field] === null || !wanted(field));
}

// Decodes input images that a client sends in a form or in JSON.

/** Returns the images to edit: form files, URLs, and data URLs. */
function parseInputImages({ image, images }: Body): readonly Media[] {
  return [...each(image, "image"), ...each(images, "images")];
}

const parseMask = ({ mask }: Body): Media | undefined => each(mask, "mask")[0];

const each = (value: unknown, param: string): readonly Media[] =>
  value === undefined || value === null
    ? []
    : Array.isArray(value)
      ? value.map((one: unknown, i) => mediaIn(one, `${param}[${i}]`))
      : [mediaIn(value, param)];

function mediaIn(value: unknown, param: string): Media {
  if (isFilePart(value)) {
    const media = { bytes: value.data };
    return { ...media, mime: sniffImage(media)?.mime ?? value.mime };
  }
  const fileId = asText(asObject(value)?.["file_id"]);
  if (fileId !== undefined) return { fileId, origin: ID };
  const url = asText(value) ?? asText(asObject(value)?.["image_url"]);
  return url !== undefined && url !== ""
    ? parseMediaUrl(url)
    : fail("invalid", `${param} must be an image: a file of a form, or an object with image_url.`, {
        param,
        code: "invalid_request",
      });
}

/** Encodes a non-streaming response. */
export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const url = to.body["response_format"] === "url";
  const pictures = answer.blocks.flatMap((b) =>
    b.type === "image" ? [{ media: b.media, note: b.note }] : [],
  );
  const facts = pictures.map(({ media }) => imageFormat(media));
  return omitUndefined({
    created: to.created,
    // These members describe all images, so they are set only if all images agree.
    output_format: agreed(facts.map((f) => f.output_format)),
    size: agreed(facts.map((f) => f.size)),
    data: pictures.map(({ media, note }) => ({ ...imageItem(media, url), ...revisedPrompt(note) })),
    usage: usageTo(answer.usage),
  });
}

const agreed = (values: readonly Opt<string>[]): Opt<string> =>
  values.every((v) => v === values[0]) ? values[0] : undefined;

/**
 * Creates an encoder that writes partial images immediately and one `completed` event per image.
 * The last `completed` event waits for the usage that it contains, because it ends the response.
 */
export function createEncoder(
  write: (text: string) => void,
  to: ResponseContext,
  prefix: "image_generation" | "image_edit" = "image_generation",
): Encoder {
  let waiting: { media: Media; note?: Opt<string> } | undefined;
  let usage: Usage | undefined;
  let partials = 0;
  const put = (event: "partial_image" | "completed", media: Media, more: JsonObject): void => {
    const type = `${prefix}.${event}`;
    const facts = imageFormat(media);
    const data = omitUndefined({
      type,
      ...imageItem(media, false),
      created_at: to.created,
      size: facts.size ?? asText(to.body["size"]) ?? "auto",
      quality: asText(to.body["quality"]) ?? "auto",
      background: asText(to.body["background"]) ?? "auto",
      output_format: facts.output_format ?? "png",
      ...more,
    });
    write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const complete = (more: JsonObject): void => {
    if (waiting) put("completed", waiting.media, { ...revisedPrompt(waiting.note), ...more });
    waiting = undefined;
  };
  return {
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "media":
          complete({});
          if (e.partial) return put("partial_image", e.media, { partial_image_index: partials++ });
          waiting = e;
          partials = 0;
          return;
        case "usage":
          usage = e.usage;
          return;
        case "finish":
          return complete({ usage: usage && usageTo(usage) });
      }
    },
    writeFault: (f) => write(streamErrorEvent(f, to)),
  };
}

// Encodes an image for a client. Streaming and non-streaming responses share this form.

/**
 * Returns the image in the requested form. An image that is available only as a URL is returned as
 * a URL.
 */
function imageItem(media: Media, url: boolean): JsonObject {
  if ("url" in media) return { url: media.url };
  if (url) return { url: toDataUrl(media, mimeOf(media)) };
  return { b64_json: toBase64(media) };
}

const revisedPrompt = (note: Opt<string>): JsonObject => (note ? { revised_prompt: note } : {});

function imageFormat(media: Media): { output_format?: Opt<string>; size?: Opt<string> } {
  const seen = sniffImage(media);
  return {
    output_format: seen && formatOf(seen.mime),
    size: seen?.size && `${seen.size.width}x${seen.size.height}`,
  };
}

/**
 * Encodes errors in OpenAI's form, with the type and code that its images endpoint uses for
 * rejected prompts.
 */
export function encodeFault(f: Fault, x: { id: string }): ErrorResponse {
  const errorResponse = refusal(
    f.kind === "content_policy" ? { code: "moderation_blocked", ...f } : f,
    x,
  );
  if (f.kind !== "content_policy") return errorResponse;
  const error = asObject(errorResponse.body["error"]);
  return { ...errorResponse, body: { error: { ...error, type: "image_generation_user_error" } } };
}

/** Returns the error event of a stream. SDKs of this protocol throw on it. */
export const streamErrorEvent = (f: Fault, x: { id: string }): string => {
  const error = encodeFault(f, x).body["error"] as JsonObject;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
};
