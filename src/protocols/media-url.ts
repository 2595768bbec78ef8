// Converts media bytes to and from data URLs, for protocols that represent an image or a file only
// as a URL.
import type { Media } from "../model/request.ts";
import { omitUndefined } from "./json-values.ts";

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,/i;

/** Parses a URL. The base64 of a data URL is extracted. Any other URL is kept. */
export function parseMediaUrl(url: string): Media {
  const head = DATA_URL.exec(url);
  if (!head) return { url };
  const base64 = url.slice(head[0].length);
  const mime = head[1]?.toLowerCase();
  return omitUndefined({
    mime: mime === "image/jpg" ? "image/jpeg" : mime,
    base64: /\s/.test(base64) ? base64.replace(/\s+/g, "") : base64,
  });
}

export function toBase64(media: { base64: string } | { bytes: Buffer }): string;
export function toBase64(media: Media): string | undefined;
export function toBase64(media: Media): string | undefined {
  if ("base64" in media) return media.base64;
  return "bytes" in media ? media.bytes.toString("base64") : undefined;
}

/** Returns the media bytes as a data URL. Returns undefined if the bytes are not available. */
export function toDataUrl(media: Media, mime: string): string | undefined {
  const base64 = toBase64(media);
  return base64 === undefined ? undefined : `data:${media.mime ?? mime};base64,${base64}`;
}

/**
 * Returns the media's URL, or its bytes as a data URL. Returns undefined for a file that only the
 * owning provider can resolve.
 */
export const toUrl = (media: Media, mime: string): string | undefined =>
  "url" in media ? media.url : toDataUrl(media, mime);
