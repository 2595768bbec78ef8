// A picture as a client is told of it: what the stream and the whole answer share.
import type { Media } from "../../../model/request.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { base64Of, dataUrl } from "../../media.ts";
import { formatOf, mimeOf, sniff } from "../../sniff.ts";

/** Where the wanted form is not at hand, the other one is better than none. */
export function item(media: Media, url: boolean): JsonObject {
  if ("url" in media) return { url: media.url };
  if (url) return { url: dataUrl(media, mimeOf(media)) };
  return { b64_json: base64Of(media) };
}

export const revised = (note: Opt<string>): JsonObject => (note ? { revised_prompt: note } : {});

export function described(media: Media): { output_format?: Opt<string>; size?: Opt<string> } {
  const seen = sniff(media);
  return {
    output_format: seen && formatOf(seen.mime),
    size: seen?.size && `${seen.size.width}x${seen.size.height}`,
  };
}
