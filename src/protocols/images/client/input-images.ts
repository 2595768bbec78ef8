// Encodes input images for backends.
import { fail } from "../../../model/error.ts";
import type { ImageRequest, Media } from "../../../model/request.ts";
import type { Body, FilePart, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { toUrl } from "../../media-url.ts";
import { formatOf, mimeOf } from "../../sniff-image.ts";
import { ID } from "../constants.ts";

type InputImages = Pick<ImageRequest, "inputImages" | "mask">;

/**
 * Encodes input images in OpenAI's form: form files if the bytes are available, URLs in JSON
 * otherwise.
 */
export function toFormFields({ inputImages, mask }: InputImages): Body {
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
