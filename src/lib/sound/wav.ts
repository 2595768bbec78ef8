import type { AudioStructure } from "./audio-structure.ts";
import { hasTagAt } from "./tags.ts";

/** Maximum number of chunks that are read. No encoder writes more before the audio. */
const MOST_CHUNKS = 1_000;
/** Uncompressed codecs with their bits per sample. */
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
 * Measures WAV files. A header that was written before the audio states a length of zero or the
 * maximum. In that case, the audio is the rest of the file. The duration is not known if the file
 * has two data chunks, two formats, or a format that is not plain.
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

/**
 * Returns the lowest bytes per second that any header field implies. A reservation trusts the field
 * that makes the audio longest and thus most expensive.
 */
function slowestOf(file: Buffer, at: number): number {
  if (at + 16 > file.length) return Infinity;
  const rate = file.readUInt32LE(at + 4);
  const bits = (file.readUInt16LE(at + 2) * file.readUInt16LE(at + 14)) / 8;
  const each = [file.readUInt32LE(at + 8), rate * file.readUInt16LE(at + 12), rate * bits];
  return Math.min(...each.filter((bytes) => bytes > 0), Infinity);
}

/** Returns the bytes per second of a plain format whose fields agree, or undefined. */
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
