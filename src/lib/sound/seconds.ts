// How long a sound is, by its file's own head. Pure, and bounded in what it looks at: a file comes from a client, and any byte of
// it may be a lie.
import { secondsOfFlac } from "./flac.ts";
import { secondsOfMp3 } from "./mp3.ts";
import { secondsOfMp4 } from "./mp4.ts";
import { secondsOfOgg } from "./ogg.ts";
import { isTag, pastTags } from "./tags.ts";
import { secondsOfWav } from "./wav.ts";
import { secondsOfWebm } from "./webm.ts";

/** No recording is longer than a year: what says so is broken. */
const MOST = 366 * 24 * 3600;

/** Undefined: it is none of the formats in use, or does not say. */
export function secondsOf(file: Buffer): number | undefined {
  const seconds = said(file);
  return seconds !== undefined && seconds > 0 && seconds <= MOST ? seconds : undefined;
}

function said(file: Buffer): number | undefined {
  if (isTag(file, 0, "RIFF") || isTag(file, 0, "RF64")) return secondsOfWav(file);
  if (isTag(file, 0, "OggS")) return secondsOfOgg(file);
  if (isTag(file, 4, "ftyp")) return secondsOfMp4(file);
  if (file.length > 4 && file.readUInt32BE(0) === 0x1a45dfa3) return secondsOfWebm(file);
  const from = pastTags(file);
  return isTag(file, from, "fLaC") ? secondsOfFlac(file, from) : secondsOfMp3(file, from);
}
