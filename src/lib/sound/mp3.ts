// Measures MP3 files. MP3 has no file header: each frame describes itself. The first frame may
// contain a frame count, but a decoder plays the frames that are present, so they are counted.
import type { AudioStructure } from "./audio-structure.ts";

/**
 * Maximum bytes between frames that do not belong to a frame, in total. Beyond that, it is unknown
 * how a decoder reads the file.
 */
const MOST_JUNK = 4_096;
/** Bytes per second: 8 to 448 kilobits per second. */
const RATES = [1_000, 56_000] as const;

interface Frame {
  readonly bytes: number;
  readonly seconds: number;
}

/** Reads the frames. `from`: end of the titles and images, which decoders skip. */
export function readMp3(file: Buffer, from: number): AudioStructure | undefined {
  let seconds = 0;
  let frames = 0;
  let junk = 0;
  let at = from;
  while (at + 4 <= file.length) {
    const frame = frameAt(file, at);
    if (frame && (frames > 0 || frameAt(file, at + frame.bytes))) {
      seconds += frame.seconds;
      frames++;
      at += frame.bytes;
      continue;
    }
    const next = file.indexOf(0xff, at + 1);
    junk += (next < 0 ? file.length : next) - at;
    if (junk > MOST_JUNK) return undefined;
    if (next < 0) break;
    at = next;
  }
  if (frames < 2) return undefined;
  return {
    statedSeconds: seconds,
    decodedSeconds: [seconds, seconds],
    bytes: file.length - from,
    rates: RATES,
  };
}
/**
 * Bit rates in kilobits per second, by layer. The first row is MPEG 1, the second all later
 * versions.
 */
const BITRATES: readonly (readonly (readonly number[])[])[] = [
  [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
];
const SAMPLE_RATES = [44_100, 48_000, 32_000] as const;

function frameAt(file: Buffer, at: number): Frame | undefined {
  if (at + 4 > file.length || file[at] !== 0xff || (file[at + 1]! & 0xe0) !== 0xe0)
    return undefined;
  const version = (file[at + 1]! >> 3) & 3;
  const layer = 4 - ((file[at + 1]! >> 1) & 3);
  const of = SAMPLE_RATES[(file[at + 2]! >> 2) & 3];
  const later = version === 3 ? 0 : 1;
  const kilobits = BITRATES[later]![layer - 1]?.[(file[at + 2]! >> 4) - 1];
  if (version === 1 || of === undefined || kilobits === undefined) return undefined;
  const rate = of / (version === 3 ? 1 : version === 2 ? 2 : 4);
  const samples = layer === 1 ? 384 : layer === 3 && later ? 576 : 1152;
  const padding = (file[at + 2]! >> 1) & 1;
  const bytes =
    layer === 1
      ? (Math.floor((12_000 * kilobits) / rate) + padding) * 4
      : Math.floor((samples * 125 * kilobits) / rate) + padding;
  return { bytes, seconds: samples / rate };
}
