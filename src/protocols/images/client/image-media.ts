// Parses an image in a response: base64 bytes or a URL.
import type { Media } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import { omitUndefined, asText } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { sniffImage } from "../../sniff-image.ts";

export function parseImage(item: JsonObject): Media | undefined {
  const base64 = asText(item["b64_json"]) || asText(item["base64"]);
  if (base64) {
    const media = parseMediaUrl(`data:;base64,${base64.replace(/^data:[^,]*,/, "")}`);
    return omitUndefined({ ...media, mime: sniffImage(media)?.mime });
  }
  const url = asText(item["url"]);
  return url ? parseMediaUrl(url) : undefined;
}
