// Pictures that a client brings, in a form or in JSON.
import { fail } from "../../../model/error.ts";
import type { Media } from "../../../model/request.ts";
import { isFilePart, type Body } from "../../../model/values.ts";
import { object, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { sniff } from "../../sniff.ts";
import { ID } from "../words.ts";

/** The pictures to be changed: a file or several, addresses, and bytes in addresses. */
export function refsIn({ image, images }: Body): readonly Media[] {
  return [...each(image, "image"), ...each(images, "images")];
}

export const maskIn = ({ mask }: Body): Media | undefined => each(mask, "mask")[0];

const each = (said: unknown, param: string): readonly Media[] =>
  said === undefined || said === null
    ? []
    : Array.isArray(said)
      ? said.map((one: unknown, i) => mediaIn(one, `${param}[${i}]`))
      : [mediaIn(said, param)];

function mediaIn(said: unknown, param: string): Media {
  if (isFilePart(said)) {
    const media = { bytes: said.data };
    return { ...media, mime: sniff(media)?.mime ?? said.mime };
  }
  const fileId = text(object(said)?.["file_id"]);
  if (fileId !== undefined) return { fileId, origin: ID };
  const url = text(said) ?? text(object(said)?.["image_url"]);
  return url !== undefined && url !== ""
    ? mediaOf(url)
    : fail(
        "invalid",
        `${param} must be a picture: a file of a form, or an object with image_url.`,
        {
          param,
          code: "invalid_request",
        },
      );
}
