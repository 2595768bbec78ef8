// Pictures to be changed, as hosts take them.
import { fail } from "../../../model/error.ts";
import type { ImageRequest, Media } from "../../../model/request.ts";
import type { Body, FilePart, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { toUrl } from "../../media-url.ts";
import { formatOf, mimeOf } from "../../sniff-image.ts";
import { ID } from "../constants.ts";

type InputImages = Pick<ImageRequest, "inputImages" | "mask">;

/** As OpenAI has it: files of a form where bytes are at hand, addresses in JSON where they are not. */
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

/** As xAI has it: one alone stands by itself, and what changes is said in words. */
export function toXaiFields(
  { inputImages, mask }: InputImages,
  of: Pick<CallContext, "model">,
): Body {
  if (mask)
    fail("unsupported", `${of.model} takes no mask: say in words what is to change.`, {
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
  fail("unsupported", "A file id of another provider cannot be drawn from.", {
    param: "image",
    code: "foreign_file_id",
  });

function file(media: Media, name: string): FilePart {
  const mime = mimeOf(media);
  const data =
    "bytes" in media ? media.bytes : Buffer.from("base64" in media ? media.base64 : "", "base64");
  return { filename: `${name}.${formatOf(mime) ?? "png"}`, mime, data };
}
