import { type AudioStructure, hasTagAt } from "./audio-structure.ts";

/** Maximum number of chunks that are read. No encoder writes more chunks before the audio. */
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
 * Measures WAV files. If the header was written before the audio, it contains a length of zero or
 * the maximum. The audio is then the rest of the file. The duration is unknown if the file has two
 * data chunks, two formats, or a format that is not plain.
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
 * Returns the lowest number of bytes per second that any header field implies. A reservation uses
 * the field that makes the audio longest and therefore most expensive.
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

// Measures FLAC files. The first block contains the sample rate in 20 bits and the number of
// samples in 36 bits. Each audio frame contains its number of samples and a checksum over its
// header, so frames can be counted without decoding.

const MOST_SAMPLES = 65_536;

export function readFlac(file: Buffer, from: number): AudioStructure | undefined {
  const at = from + 8;
  if (at + 34 > file.length || (file[from + 4]! & 127) !== 0) return undefined;
  const rate = file.readUIntBE(at + 10, 3) >>> 4;
  if (rate === 0) return undefined;
  const channels = ((file[at + 12]! >> 1) & 7) + 1;
  const bits = (((file[at + 12]! & 1) << 4) | (file[at + 13]! >> 4)) + 1;
  const samples = (file[at + 13]! & 15) * 2 ** 32 + file.readUInt32BE(at + 14);
  const found = framesIn(file, at) / rate;
  return {
    statedSeconds: samples === 0 ? undefined : samples / rate,
    decodedSeconds: [found, found],
    bytes: file.length,
    // Silence takes a few bytes per frame. Audio that cannot be compressed is stored uncompressed.
    rates: [0, Math.max((rate * channels * bits) / 8, 1)],
  };
}

/**
 * Returns the number of samples in all frames from byte `at` on. Frames contain this number even if
 * the encoder did not know the total length.
 */
function framesIn(file: Buffer, at: number): number {
  let samples = 0;
  for (let next = file.indexOf(0xff, at); next >= 0; next = file.indexOf(0xff, next + 1))
    if ((file[next + 1]! & 0xfe) === 0xf8) samples += frameAt(file, next);
  return samples;
}

/**
 * Returns the number of samples of the frame whose header begins at `at`, or 0 if there is no
 * frame.
 */
function frameAt(file: Buffer, at: number): number {
  const size = (file[at + 2] ?? 0) >> 4;
  const rate = (file[at + 2] ?? 0) & 15;
  if (size === 0 || rate === 15 || (file[at + 3] ?? 1) & 1) return 0;
  let end = at + 4 + numberLength(file[at + 4] ?? 0xff);
  const stated = end;
  end += size === 6 ? 1 : size === 7 ? 2 : 0;
  end += rate === 12 ? 1 : rate === 13 || rate === 14 ? 2 : 0;
  if (end >= file.length || checksum(file, at, end) !== file[end]) return 0;
  if (size === 1) return 192;
  if (size <= 5) return 576 << (size - 2);
  if (size === 6) return file[stated]! + 1;
  if (size === 7) return file.readUInt16BE(stated) + 1;
  return Math.min(256 << (size - 8), MOST_SAMPLES);
}

/** Returns the length in bytes of the frame's number, which is encoded like a UTF-8 character. */
const numberLength = (first: number): number =>
  first < 0x80 ? 1 : Math.min(Math.max(Math.clz32(~first << 24), 1), 7);

function checksum(file: Buffer, from: number, to: number): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum = CRC8[sum ^ file[at]!]!;
  return sum;
}

const CRC8 = Uint8Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 0x80 ? (byte << 1) ^ 0x07 : byte << 1;
  return byte & 0xff;
});
