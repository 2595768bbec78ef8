// Detects an image's format and size from its first bytes. The type that a provider declares for
// its own output is not always correct.
import type { Media } from "../model/request.ts";
import type { Size } from "./images/size.ts";

export interface ImageHead {
  mime: string;
  size?: Size;
}

/**
 * Number of bytes to inspect. It is enough for every header, except for a JPEG with more metadata
 * before its size.
 */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Returns the image's type and size. Returns undefined if the bytes are not available or the format
 * is unknown.
 */
export function sniffImage(media: Media): ImageHead | undefined {
  if ("bytes" in media) return readImageHead(media.bytes);
  if (!("base64" in media)) return undefined;
  return readImageHead(Buffer.from(media.base64.slice(0, (MAX_HEADER_BYTES / 3) * 4), "base64"));
}

export const mimeOf = (media: Media): string =>
  sniffImage(media)?.mime ?? media.mime ?? "image/png";

/** Returns the `output_format` value for a MIME type: "png", "jpeg", "webp", "gif", or "svg". */
export const formatOf = (mime: string): string | undefined => /^image\/([a-z]+)/.exec(mime)?.[1];

function readImageHead(b: Buffer): ImageHead | undefined {
  if (b.length >= 24 && b.readUInt32BE(0) === 0x89504e47)
    return { mime: "image/png", size: { width: b.readUInt32BE(16), height: b.readUInt32BE(20) } };
  if (b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff) return withSize("image/jpeg", sizeOfJpeg(b));
  if (b.length >= 30 && readTag(b, 0) === "RIFF" && readTag(b, 8) === "WEBP")
    return withSize("image/webp", sizeOfWebp(b));
  if (b.length >= 10 && readTag(b, 0) === "GIF8")
    return {
      mime: "image/gif",
      size: { width: b.readUInt16LE(6), height: b.readUInt16LE(8) },
    };
  if (
    /^(?:\uFEFF)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<svg[\s>]/s.test(
      b.toString("utf8", 0, 1024),
    )
  )
    return { mime: "image/svg+xml" };
  return undefined;
}

const withSize = (mime: string, size: Size | undefined): ImageHead =>
  size ? { mime, size } : { mime };

const readTag = (b: Buffer, at: number): string => b.toString("latin1", at, at + 4);

/**
 * Returns the size of a JPEG. Skips segments up to a start-of-frame segment, which contains the
 * size.
 */
function sizeOfJpeg(b: Buffer): Size | undefined {
  for (let i = 2; i + 9 < b.length;) {
    if (b[i] !== 0xff) return undefined;
    const marker = b[i + 1]!;
    if (marker === 0xff) {
      i++;
      continue;
    }
    const frame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (frame) return { width: b.readUInt16BE(i + 7), height: b.readUInt16BE(i + 5) };
    i += 2 + b.readUInt16BE(i + 2);
  }
  return undefined;
}

/**
 * Returns the size of a WebP image. The first chunk has one of three types, each with the size at a
 * different offset.
 */
function sizeOfWebp(b: Buffer): Size | undefined {
  switch (readTag(b, 12)) {
    case "VP8 ":
      return { width: b.readUInt16LE(26) & 0x3fff, height: b.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = b.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: b.readUIntLE(24, 3) + 1, height: b.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}
