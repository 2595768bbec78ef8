// Ogg says at each page how far the sound is: the last page says how long it is.
import { isTag } from "./tags.ts";

const PAGE = Buffer.from("OggS");
/** What looks like a page may stand inside of one. */
const MOST_TRIES = 64;
const OPUS_RATE = 48_000;

export function secondsOfOgg(file: Buffer): number | undefined {
  if (file.length < 28) return undefined;
  const head = 27 + file[26]!;
  const codec = codecAt(file, head);
  if (!codec || codec.rate === 0) return undefined;
  const stream = file.readUInt32LE(14);
  let at = file.length;
  for (let n = 0; n < MOST_TRIES && at > 0; n++) {
    at = file.lastIndexOf(PAGE, at - 1);
    if (at < 0) return undefined;
    if (at + 27 > file.length || file[at + 4] !== 0 || file.readUInt32LE(at + 14) !== stream)
      continue;
    const samples = file.readBigInt64LE(at + 6);
    if (samples > 0n) return (Number(samples) - codec.skip) / codec.rate;
  }
  return undefined;
}

/** `skip`: samples before the sound, which are not heard. */
function codecAt(file: Buffer, at: number): { rate: number; skip: number } | undefined {
  if (isTag(file, at, "OpusHead") && at + 12 <= file.length)
    return { rate: OPUS_RATE, skip: file.readUInt16LE(at + 10) };
  if (isTag(file, at, "\x01vorbis") && at + 16 <= file.length)
    return { rate: file.readUInt32LE(at + 12), skip: 0 };
  if (isTag(file, at, "\x7fFLAC") && at + 30 <= file.length)
    return { rate: file.readUIntBE(at + 27, 3) >>> 4, skip: 0 };
  if (isTag(file, at, "Speex   ") && at + 40 <= file.length)
    return { rate: file.readUInt32LE(at + 36), skip: 0 };
  return undefined;
}
