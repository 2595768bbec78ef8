// Measures FLAC files. The first block states the sample rate in 20 bits and the number of samples
// in 36 bits. Each audio frame states its number of samples and has a checksum over its header, so
// frames can be counted without decoding.
import type { AudioStructure } from "./audio-structure.ts";

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
 * Returns the number of samples in all frames from byte `at` on. Frames have this number even if
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
