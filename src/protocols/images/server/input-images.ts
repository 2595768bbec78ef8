// Decodes input images that a client sends in a form or in JSON.
import { fail } from "../../../model/error.ts";
import type { Media } from "../../../model/request.ts";
import { isFilePart, type Body } from "../../../model/values.ts";
import { asObject, asText } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { sniffImage } from "../../sniff-image.ts";
import { ID } from "../constants.ts";

/** Returns the images to edit: form files, URLs, and data URLs. */
export function parseInputImages({ image, images }: Body): readonly Media[] {
  return [...each(image, "image"), ...each(images, "images")];
}

export const parseMask = ({ mask }: Body): Media | undefined => each(mask, "mask")[0];

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
