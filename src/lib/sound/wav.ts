import { isTag } from "./tags.ts";

/** No encoder writes more chunks before the sound. */
const MOST_CHUNKS = 1_000;
/** What is not compressed, by its code: its own rate is worked out, since the one that is written may say anything. */
const PLAIN: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);

/** A head that was written before the sound was there says that there is none, or as much as can be: then it is all that follows. */
export function secondsOfWav(file: Buffer): number | undefined {
  let rate: number | undefined;
  for (let at = 12, n = 0; at + 8 <= file.length && n < MOST_CHUNKS; n++) {
    const size = file.readUInt32LE(at + 4);
    const from = at + 8;
    if (isTag(file, at, "fmt ")) rate = bytesASecond(file, from);
    else if (isTag(file, at, "data")) {
      const rest = file.length - from;
      const bytes = size === 0 || size > rest ? rest : size;
      return rate === undefined || rate === 0 ? undefined : bytes / rate;
    }
    at = from + size + (size & 1);
  }
  return undefined;
}

function bytesASecond(file: Buffer, at: number): number | undefined {
  if (at + 16 > file.length) return undefined;
  const plain = PLAIN.has(file.readUInt16LE(at));
  const bits = file.readUInt16LE(at + 2) * file.readUInt16LE(at + 14);
  return plain ? (file.readUInt32LE(at + 4) * bits) / 8 : file.readUInt32LE(at + 8);
}
