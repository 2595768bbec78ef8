// How long a sound is, by its own file. Pure, and bounded in what it looks at. A file comes from a client: a duration in its header is
// believed only where the frames that follow bear it out.
import { readFlac } from "./flac.ts";
import { readMp3 } from "./mp3.ts";
import { readMp4 } from "./mp4.ts";
import { readOgg } from "./ogg.ts";
import type { AudioStructure } from "./audio-structure.ts";
import { hasTagAt, skipId3Tags } from "./tags.ts";
import { readWav } from "./wav.ts";
import { readWebm } from "./webm.ts";

export interface AudioDuration {
  /** Seconds. Undefined: not known. */
  readonly seconds: number | undefined;
  /** Seconds where `seconds` is not known: by the frames that were found, or by the bytes. */
  readonly estimatedSeconds: number;
  /** Seconds that these bytes can hold, whatever the header states. */
  readonly maxSeconds: number;
}

/** No recording is longer than a year. */
const MAX_SECONDS = 366 * 24 * 3600;
/** Bytes per second of the most compressed speech. Frames of silence are smaller: formats that have them count their frames. */
const MIN_BYTES_PER_SECOND = 750;
/** In a format that is not read here, any second may be silence. AAC writes 79 bytes for one. */
const MIN_BYTES_PER_SECOND_UNKNOWN = 50;
/** A header and the frames may differ by so much: encoders add silence at both ends. */
const TOLERANCE = 0.1;
const TOLERANCE_SECONDS = 0.25;
/** Bytes of titles and of the container. */
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

/** The frames are as long as the header states, and the bytes are a bitrate of the codec. */
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
