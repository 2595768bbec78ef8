// The half of the images protocol that faces providers: requests and responses.
import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { ImageRequest, Media } from "../../model/request.ts";
import { mergeUsage, UNITS, type Usage } from "../../model/usage.ts";
import type { Body, FilePart, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type { CallContext, Decoder } from "../../plugin/protocol.ts";
import { throwParsedError, parseResponseObject } from "../failure/parse-error.ts";
import { asObject, omitUndefined, parseNumber, asText, asList, ownEntry } from "../json-values.ts";
import { toUrl, parseMediaUrl } from "../media-url.ts";
import { dropFields } from "../operation-protocol.ts";
import { rejectBlockedReferences } from "../references/index.ts";
import { formatOf, mimeOf, sniffImage, type ImageHead } from "../sniff-image.ts";
import { createEventDecoder } from "../sse/index.ts";
import { parseEventObject } from "../sse/event-splitter.ts";
import { requireSupported, ratioOf, sizeOf } from "./size.ts";
import { EDITS, ID, type ImageTraits, usageSeen, parseTokenUsage } from "./spec.ts";

/**
 * Encodes a request in OpenAI's form. `prepare` adapts it to the backend's dialect, in both modes.
 */
export function encodeRequest(
  r: ImageRequest,
  of: Pick<CallContext, "model" | "stream" | "reportLoss" | "action">,
  brought: (r: ImageRequest, of: Pick<CallContext, "model">) => Body = toFormFields,
): Body {
  if (r.partialImages && !of.stream) of.reportLoss("partial_images", "dropped");
  const edits = of.action === EDITS;
  if (!edits && (r.inputImages.length > 0 || r.mask))
    fail(
      "unsupported",
      "This endpoint generates images from text only and accepts no input images.",
      {
        param: "image",
      },
    );
  if (edits && r.inputImages.length === 0)
    fail("unsupported", "This endpoint requires an input image.", { param: "image" });
  return omitUndefined({
    model: of.model,
    ...(edits && brought(r, of)),
    prompt: r.prompt,
    n: r.n === 1 ? undefined : r.n,
    size: r.size,
    quality: r.quality,
    background: r.background,
    output_format: r.format,
    output_compression: r.compression,
    seed: r.seed,
    user: r.user,
    response_format: r.responseFormat === "url" ? "url" : "b64_json",
    stream: of.stream ? true : undefined,
    partial_images: of.stream ? r.partialImages : undefined,
    ...asObject(r.ext[ID]),
  });
}

/** Encodes input images for backends. */
type InputImages = Pick<ImageRequest, "inputImages" | "mask">;

/**
 * Encodes input images in OpenAI's form: form files if the bytes are available, URLs in JSON
 * otherwise.
 */
function toFormFields({ inputImages, mask }: InputImages): Body {
  const all = mask ? [...inputImages, mask] : inputImages;
  if (all.some((media) => !hasBytes(media)))
    return { images: inputImages.map(toUrlObject), mask: mask && toUrlObject(mask) };
  const files = inputImages.map((media) => file(media, "image"));
  const [one] = files;
  return {
    image: files.length === 1 ? one : files,
    mask: mask && file(mask, "mask"),
  };
}

/**
 * Encodes input images in xAI's form. A single image has its own field, and masks are not
 * supported: the prompt describes the change.
 */
export function toXaiFields(
  { inputImages, mask }: InputImages,
  of: Pick<CallContext, "model">,
): Body {
  if (mask)
    fail("unsupported", `${of.model} does not support masks. Describe the change in the prompt.`, {
      param: "mask",
    });
  const all = inputImages.map((media): JsonObject => {
    const url = toUrl(media, mimeOf(media));
    return url === undefined ? failForeignFile() : { url, type: "image_url" };
  });
  return all.length === 1 ? { image: all[0] } : { images: all };
}

const hasBytes = (media: Media): boolean => "bytes" in media || "base64" in media;

function toUrlObject(media: Media): JsonObject {
  if ("fileId" in media) return media.origin === ID ? { file_id: media.fileId } : failForeignFile();
  return { image_url: toUrl(media, mimeOf(media)) };
}

const failForeignFile = (): never =>
  fail("unsupported", "A file ID of another provider cannot be used as an input image.", {
    param: "image",
    code: "foreign_file_id",
  });

function file(media: Media, name: string): FilePart {
  const mime = mimeOf(media);
  const data =
    "bytes" in media ? media.bytes : Buffer.from("base64" in media ? media.base64 : "", "base64");
  return { filename: `${name}.${formatOf(mime) ?? "png"}`, mime, data };
}

/**
 * Adapts an outgoing request to the backend's dialect, in both modes, and checks it against the
 * catalog's model metadata.
 */
export function prepare(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  // An image stored in a provider account can be read with its key, and all clients share the
  // gateway's key.
  rejectBlockedReferences(out, of.stateMode);
  // The quality is converted to the backend's name first, because the catalog contains these names.
  const quality = asText(out.get("quality"));
  const other = quality === undefined ? undefined : ownEntry(traits.qualityNames ?? {}, quality);
  if (other !== undefined) out.set("quality", other);
  requireSupported(
    {
      n: parseNumber(out.get("n")),
      size: asText(out.get("size")),
      quality: asText(out.get("quality")),
      format: asText(out.get("output_format")),
    },
    of.info,
  );
  if (traits.maxImages !== undefined && (parseNumber(out.get("n")) ?? 1) > traits.maxImages)
    fail("unsupported", `${of.model} generates at most ${traits.maxImages} images at a time.`, {
      param: "n",
    });
  adaptResponseFormat(out, traits);
  adaptSize(out, of, traits);
  // A null or `auto` has no effect, so dropping it is not reported.
  dropFields(out, of, traits.dropFields, [null, "auto"]);
}

/**
 * Sets the response format wherever the backend accepts it. If it is unset, clients expect bytes,
 * but half of the backends return URLs.
 */
function adaptResponseFormat(out: Outgoing, { responseFormat = "b64_json" }: ImageTraits): void {
  const url = out.get("response_format") === "url";
  if (responseFormat === "bytes" || responseFormat === "url") out.remove("response_format");
  else out.set("response_format", url ? "url" : responseFormat);
}

function adaptSize(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  if ((traits.size ?? "wxh") === "wxh") return;
  const requested = out.get("size");
  const size = sizeOf(asText(requested));
  if (requested !== undefined) out.remove("size");
  if (!size) return;
  if (traits.size === "width_height") {
    out.set("width", size.width);
    out.set("height", size.height);
    return;
  }
  out.set("aspect_ratio", ratioOf(size, traits.ratios));
  const longer = Math.max(size.width, size.height);
  const words = traits.resolutions ?? [];
  const word = (words.find(([, upTo]) => longer <= upTo) ?? words[words.length - 1])?.[0];
  if (word !== undefined) out.set("resolution", word);
  of.reportLoss("size", "approximated", "size_approximated");
}

/** Decodes a non-streaming response into events: one block per image. */
type Emit = (event: ModelEvent) => void;

export function decodeResponse(body: Buffer, emit: Emit, of: CallContext): void {
  const answer = parseResponseObject(body.toString("utf8"), "data");
  const items = asList(answer["data"]).map((item) => asObject(item) ?? {});
  const pictures = items.flatMap((item) => {
    const media = parseImage(item);
    return media ? [{ media, note: asText(item["revised_prompt"]) }] : [];
  });
  if (pictures.length === 0) failNoImage(items);
  if (pictures.length < items.length) of.reportLoss("data", "dropped", "image_missing");
  emit({ type: "start" });
  pictures.forEach(({ media, note }, index) => {
    emit({ type: "open", index, block: { type: "image" } });
    emit(omitUndefined({ type: "media" as const, index, media, note }));
    emit({ type: "close", index });
  });
  emit(
    usageSeen(
      asObject(answer["usage"]),
      pictures.map(({ media }) => sniffImage(media)),
    ),
  );
  emit({ type: "finish", reason: "stop" });
}

/** Throws if no image was returned, with the reason of the first error if there is one. */
function failNoImage(items: readonly JsonObject[]): never {
  const error = items.map((item) => asObject(item["error"])).find((e) => e !== undefined);
  if (error) throwParsedError({ error });
  if (items.some((item) => item["respect_moderation"] === false))
    fail("content_policy", "The provider's moderation withheld the image.", {
      code: "moderation_blocked",
    });
  return fail("upstream", "The provider returned no image.", { code: "no_image" });
}

/** Decodes a stream into events: one block per image. */
export const MAX_EVENT_BYTES = BOUNDS.imageEvent.max;

/**
 * Creates a decoder for partial images and one `completed` event per image. The protocol does not
 * contain the number of images, so the response ends when the stream ends.
 */
export function createDecoder(emit: Emit): Decoder {
  const seen: (ImageHead | undefined)[] = [];
  let index = -1;
  let open = false;
  let usage: Usage | undefined;
  const opened = (): void => {
    if (index < 0) emit({ type: "start" });
    if (open) return;
    open = true;
    emit({ type: "open", index: ++index, block: { type: "image" } });
  };
  const decoder = createEventDecoder(
    (_event, data) => {
      if (data === "[DONE]") return;
      const parsedEvent = parseEventObject(data);
      const type = asText(parsedEvent["type"]) ?? "";
      if (type === "error" || asObject(parsedEvent["error"])) throwParsedError(parsedEvent);
      const media = parseImage(parsedEvent);
      if (!media) return;
      opened();
      if (type.endsWith(".partial_image"))
        return emit({ type: "media", index, media, partial: true });
      seen.push(sniffImage(media));
      emit(
        omitUndefined({
          type: "media" as const,
          index,
          media,
          note: asText(parsedEvent["revised_prompt"]),
        }),
      );
      emit({ type: "close", index });
      open = false;
      usage = addUsage(usage, parseTokenUsage(asObject(parsedEvent["usage"])));
    },
    { maxLineBytes: MAX_EVENT_BYTES, maxEventBytes: MAX_EVENT_BYTES },
  );
  return {
    push: decoder.push,
    end() {
      decoder.end();
      if (seen.length === 0 || open)
        fail("upstream", "The provider's stream ended before its image was complete.", {
          code: "truncated",
        });
      emit(usage ? { type: "usage", usage } : usageSeen(undefined, seen));
      emit({ type: "finish", reason: "stop" });
    },
  };
}

/** Adds usage reports. Each image of a stream reports its own usage. */
export function addUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (!a || !b) return a ?? b;
  const both: { -readonly [U in keyof Usage]: Usage[U] } = mergeUsage(a, b);
  for (const unit of UNITS)
    if (a[unit] !== undefined && b[unit] !== undefined) both[unit] = a[unit] + b[unit];
  return both;
}

/** Parses an image in a response: base64 bytes or a URL. */
function parseImage(item: JsonObject): Media | undefined {
  const base64 = asText(item["b64_json"]) || asText(item["base64"]);
  if (base64) {
    const media = parseMediaUrl(`data:;base64,${base64.replace(/^data:[^,]*,/, "")}`);
    return omitUndefined({ ...media, mime: sniffImage(media)?.mime });
  }
  const url = asText(item["url"]);
  return url ? parseMediaUrl(url) : undefined;
}
