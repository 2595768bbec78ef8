// How long a sound is, by its own file. Pure, and bounded in what it looks at. A file comes from a client: a duration in its header is
// believed only where the frames that follow bear it out.
import { readFlac } from "./flac.ts";
import { readMp3 } from "./mp3.ts";
import { readMp4 } from "./mp4.ts";
import { readOgg } from "./ogg.ts";
import type { SoundReading } from "./reading.ts";
import { isTag, pastTags } from "./tags.ts";
import { readWav } from "./wav.ts";
import { readWebm } from "./webm.ts";

export interface SoundLength {
  /** Seconds. Undefined: not known. */
  readonly seconds: number | undefined;
  /** Seconds where `seconds` is not known: by the frames that were found, or by the bytes. */
  readonly likely: number;
  /** Seconds that these bytes can hold, whatever the header states. */
  readonly most: number;
}

/** No recording is longer than a year. */
const LONGEST = 366 * 24 * 3600;
/** Bytes per second of the most compressed speech. Frames of silence are smaller: formats that have them count their frames. */
const LEAST = 750;
/** In a format that is not read here, any second may be silence. AAC writes 79 bytes for one. */
const LEAST_UNREAD = 50;
/** A header and the frames may differ by so much: encoders add silence at both ends. */
const NEAR = 0.1;
const NEAR_SECONDS = 0.25;
/** Bytes of titles and of the container. */
const FRAMING = 4_096;

export function lengthOf(file: Buffer): SoundLength {
  const read = readingOf(file);
  if (!read)
    return { seconds: undefined, likely: file.length / LEAST, most: file.length / LEAST_UNREAD };
  const found = Math.min(read.found[1], LONGEST);
  const said = sane(read.said);
  return {
    seconds: said !== undefined && isBorneOut(said, read) ? said : undefined,
    likely: found > 0 ? found : file.length / LEAST,
    most: Math.max(file.length / LEAST, found, said ?? sane(read.stated) ?? 0),
  };
}

const sane = (seconds: number | undefined): number | undefined =>
  seconds !== undefined && seconds > 0 && seconds <= LONGEST ? seconds : undefined;

/** The frames are as long as the header states, and the bytes are a bitrate of the codec. */
function isBorneOut(said: number, { found: [least, most], bytes, rates }: SoundReading): boolean {
  const [slowest, fastest] = rates;
  return (
    said >= least * (1 - NEAR) - NEAR_SECONDS &&
    said <= most * (1 + NEAR) + NEAR_SECONDS &&
    bytes <= said * fastest * (1 + NEAR) + FRAMING &&
    bytes + FRAMING >= said * slowest
  );
}

function readingOf(file: Buffer): SoundReading | undefined {
  if (isTag(file, 0, "RIFF") || isTag(file, 0, "RF64")) return readWav(file);
  if (isTag(file, 0, "OggS")) return readOgg(file);
  if (isTag(file, 4, "ftyp")) return readMp4(file);
  if (file.length > 4 && file.readUInt32BE(0) === 0x1a45dfa3) return readWebm(file);
  const from = pastTags(file);
  return isTag(file, from, "fLaC") ? readFlac(file, from) : readMp3(file, from);
}
