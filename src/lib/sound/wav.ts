import type { AudioStructure } from "./audio-structure.ts";
import { hasTagAt } from "./tags.ts";

/** No encoder writes more chunks before the sound. */
const MOST_CHUNKS = 1_000;
/** Codecs that are not compressed, each with its bits per sample. */
const PLAIN: ReadonlyMap<number, readonly number[]> = new Map([
  [1, [8, 16, 24, 32]],
  [3, [32, 64]],
  [6, [8]],
  [7, [8]],
]);
const EXTENSIBLE = 0xfffe;
const RATES = { least: 4_000, most: 384_000 } as const;
const MOST_CHANNELS = 32;

/**
 * A header that was written before the sound states no length, or the longest: then the sound is all that follows. Two sounds, two
 * formats, and a format that is no plain one make a file whose length is not known.
 */
export function readWav(file: Buffer): AudioStructure {
  const rates: (number | undefined)[] = [];
  const sounds: number[] = [];
  let stated = 0;
  let at = 12;
  for (let n = 0; at + 8 <= file.length && n < MOST_CHUNKS; n++) {
    const size = file.readUInt32LE(at + 4);
    const from = at + 8;
    const rest = file.length - from;
    if (hasTagAt(file, at, "fmt ")) {
      rates.push(bytesPerSecond(file, from, size));
      stated = Math.max(stated, rest / slowestOf(file, from));
    } else if (hasTagAt(file, at, "data")) {
      const open = size === 0 || size > rest;
      sounds.push(open ? rest : size);
      if (open) break;
    }
    at = from + size + (size & 1);
  }
  const known = rates.filter((rate) => rate !== undefined);
  const slowest = known.length > 0 ? Math.min(...known) : 0;
  const one = rates.length === 1 && known.length === 1 && sounds.length === 1;
  const statedSeconds = one ? sounds[0]! / slowest : undefined;
  const most = slowest > 0 ? (file.length - 12) / slowest : 0;
  return {
    statedSeconds,
    maxStatedSeconds: stated,
    decodedSeconds: [statedSeconds ?? 0, most],
    bytes: file.length,
    rates: [slowest, slowest],
  };
}

/** Bytes per second, by whichever of its fields makes the sound longest: for a hold, a header is believed in what it makes dearer. */
function slowestOf(file: Buffer, at: number): number {
  if (at + 16 > file.length) return Infinity;
  const rate = file.readUInt32LE(at + 4);
  const bits = (file.readUInt16LE(at + 2) * file.readUInt16LE(at + 14)) / 8;
  const each = [file.readUInt32LE(at + 8), rate * file.readUInt16LE(at + 12), rate * bits];
  return Math.min(...each.filter((bytes) => bytes > 0), Infinity);
}

/** Of a plain format whose fields agree with each other. */
function bytesPerSecond(file: Buffer, at: number, size: number): number | undefined {
  if (size < 16 || at + size > file.length) return undefined;
  const named = file.readUInt16LE(at);
  const codec = named !== EXTENSIBLE ? named : size >= 26 ? file.readUInt16LE(at + 24) : 0;
  const channels = file.readUInt16LE(at + 2);
  const rate = file.readUInt32LE(at + 4);
  const block = file.readUInt16LE(at + 12);
  const bits = file.readUInt16LE(at + 14);
  const agrees =
    PLAIN.get(codec)?.includes(bits) &&
    channels >= 1 &&
    channels <= MOST_CHANNELS &&
    rate >= RATES.least &&
    rate <= RATES.most &&
    block === (channels * bits) / 8 &&
    file.readUInt32LE(at + 8) === rate * block;
  return agrees ? rate * block : undefined;
}
