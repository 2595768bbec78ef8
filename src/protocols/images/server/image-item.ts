// Encodes an image for a client. Streaming and non-streaming responses share this form.
import type { Media } from "../../../model/request.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { toBase64, toDataUrl } from "../../media-url.ts";
import { formatOf, mimeOf, sniffImage } from "../../sniff-image.ts";

/**
 * Returns the image in the requested form. An image that is available only as a URL is returned as
 * a URL.
 */
export function imageItem(media: Media, url: boolean): JsonObject {
  if ("url" in media) return { url: media.url };
  if (url) return { url: toDataUrl(media, mimeOf(media)) };
  return { b64_json: toBase64(media) };
}

export const revisedPrompt = (note: Opt<string>): JsonObject =>
  note ? { revised_prompt: note } : {};

export function imageFormat(media: Media): { output_format?: Opt<string>; size?: Opt<string> } {
  const seen = sniffImage(media);
  return {
    output_format: seen && formatOf(seen.mime),
    size: seen?.size && `${seen.size.width}x${seen.size.height}`,
  };
}
