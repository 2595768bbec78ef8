/**
 * Measurements of an audio file's structure. Only `statedSeconds` and `maxStatedSeconds` are taken
 * from headers.
 */
export interface AudioStructure {
  /**
   * Duration in seconds in the header. Undefined if the header contains no such value, or if the
   * file is not a single plain audio stream.
   */
  readonly statedSeconds: number | undefined;
  /** Longest duration in seconds that any header in the file states, for a reservation. */
  readonly maxStatedSeconds?: number | undefined;
  /** Minimum and maximum duration in seconds that a decoder gets from the frames in the file. */
  readonly decodedSeconds: readonly [least: number, most: number];
  /** Bytes of audio. `rates`: the numbers of bytes per second that the codec can use. */
  readonly bytes: number;
  readonly rates: readonly [least: number, most: number];
}

// Finds four-letter tags and skips ID3 tags, which tools write before the audio.

export const hasTagAt = (file: Buffer, at: number, name: string): boolean =>
  file.length >= at + name.length && file.toString("latin1", at, at + name.length) === name;

/** Returns the offset after the ID3v2 tags (titles, images), or 0 if there are none. */
export function skipId3Tags(file: Buffer): number {
  if (!hasTagAt(file, 0, "ID3") || file.length < 10) return 0;
  // Each byte contains 7 bits, so that no size looks like the start of a frame.
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + (file[at]! & 127), 0);
  const footer = file[5]! & 16 ? 10 : 0;
  return Math.min(file.length, 10 + size + footer);
}
