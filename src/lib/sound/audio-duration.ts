// Measures the duration of an audio file, without side effects and with bounded work. Files come
// from clients, so a duration in a header is trusted only if the frames that follow confirm it.
import { readFlac, readWav } from "./wav-flac.ts";
import { readMp3 } from "./mp3.ts";
import { readMp4 } from "./mp4.ts";
import { readOgg } from "./ogg.ts";
import { type AudioStructure, hasTagAt, skipId3Tags } from "./audio-structure.ts";
import { readWebm } from "./webm.ts";

export interface AudioDuration {
  /** Duration in seconds. Undefined: not known. */
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
 * Bytes per second of the most compressed speech. Silent frames are smaller, but in formats that
 * have them the frames are counted.
 */
const MIN_BYTES_PER_SECOND = 750;
/**
 * Minimum bytes per second for formats that are not parsed. Any second can be silence, for which
 * AAC writes 79 bytes.
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
