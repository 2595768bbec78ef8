// A picture as a host answers it: bytes in base64, or an address.
import type { Media } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import { present, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { sniff } from "../../sniff.ts";

export function picture(item: JsonObject): Media | undefined {
  const base64 = text(item["b64_json"]) || text(item["base64"]);
  if (base64) {
    const media = mediaOf(`data:;base64,${base64.replace(/^data:[^,]*,/, "")}`);
    return present({ ...media, mime: sniff(media)?.mime });
  }
  const url = text(item["url"]);
  return url ? mediaOf(url) : undefined;
}
