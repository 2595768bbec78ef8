// Measures the duration of an audio file, without side effects and with bounded work. Files come
// from clients, so a duration in a header is used only if the frames after it confirm it.
import { readFlac, readWav } from "./wav-flac.ts";
import { readMp4 } from "./mp4.ts";
import { readOgg } from "./ogg.ts";
import { type AudioStructure, hasTagAt, skipId3Tags } from "./audio-structure.ts";
import { readWebm } from "./webm.ts";

export interface AudioDuration {
  /** Duration in seconds. Undefined if it is unknown. */
  readonly seconds: number | undefined;
  /**
   * Estimate in seconds, for use if `seconds` is undefined. Derived from the frames that were
   * found, or from the file size.
   */
  readonly estimatedSeconds: number;
  /** Maximum duration in seconds that the file can contain, regardless of its header. */
  readonly maxSeconds: number;
}

/** Longest plausible recording, in seconds (1 year). */
const MAX_SECONDS = 366 * 24 * 3600;
/**
 * Bytes per second of the most compressed speech. Silent frames are smaller, but formats with
 * silent frames are measured by counting frames.
 */
const MIN_BYTES_PER_SECOND = 750;
/**
 * Minimum bytes per second for formats that are not parsed. Any second can be silent, and AAC needs
 * 79 bytes for a second of silence.
 */
const MIN_BYTES_PER_SECOND_UNKNOWN = 50;
/** Allowed relative difference between header and frames. Encoders add silence at both ends. */
const TOLERANCE = 0.1;
const TOLERANCE_SECONDS = 0.25;
/** Bytes allowed for titles and for the container. */
const FRAMING_BYTES = 4_096;

export function measureAudio(file: Buffer): AudioDuration {
  const read = readStructure(file);
  if (!read)
    return {
      seconds: undefined,
      estimatedSeconds: file.length / MIN_BYTES_PER_SECOND,
      maxSeconds: file.length / MIN_BYTES_PER_SECOND_UNKNOWN,
    };
  const found = Math.min(read.decodedSeconds[1], MAX_SECONDS);
  const statedSeconds = plausibleSeconds(read.statedSeconds);
  return {
    seconds:
      statedSeconds !== undefined && isConfirmed(statedSeconds, read) ? statedSeconds : undefined,
    estimatedSeconds: found > 0 ? found : file.length / MIN_BYTES_PER_SECOND,
    maxSeconds: Math.max(
      file.length / MIN_BYTES_PER_SECOND,
      found,
      statedSeconds ?? plausibleSeconds(read.maxStatedSeconds) ?? 0,
    ),
  };
}

const plausibleSeconds = (seconds: number | undefined): number | undefined =>
  seconds !== undefined && seconds > 0 && seconds <= MAX_SECONDS ? seconds : undefined;

/**
 * Whether the frames are as long as the header states and the size matches a bit rate of the codec.
 */
function isConfirmed(
  statedSeconds: number,
  { decodedSeconds: [least, most], bytes, rates }: AudioStructure,
): boolean {
  const [slowest, fastest] = rates;
  return (
    statedSeconds >= least * (1 - TOLERANCE) - TOLERANCE_SECONDS &&
    statedSeconds <= most * (1 + TOLERANCE) + TOLERANCE_SECONDS &&
    bytes <= statedSeconds * fastest * (1 + TOLERANCE) + FRAMING_BYTES &&
    bytes + FRAMING_BYTES >= statedSeconds * slowest
  );
}

function readStructure(file: Buffer): AudioStructure | undefined {
  if (hasTagAt(file, 0, "RIFF") || hasTagAt(file, 0, "RF64")) return readWav(file);
  if (hasTagAt(file, 0, "OggS")) return readOgg(file);
  if (hasTagAt(file, 4, "ftyp")) return readMp4(file);
  if (file.length > 4 && file.readUInt32BE(0) === 0x1a45dfa3) return readWebm(file);
  const from = skipId3Tags(file);
  return hasTagAt(file, from, "fLaC") ? readFlac(file, from) : readMp3(file, from);
}

// Measures MP3 files. MP3 has no file header: each frame describes itself. The first frame may
// contain a frame count, but a decoder plays the frames that exist, so they are counted.

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

/** Reads the frames. `from`: end of the metadata (titles, images), which decoders skip. */
function readMp3(file: Buffer, from: number): AudioStructure | undefined {
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
