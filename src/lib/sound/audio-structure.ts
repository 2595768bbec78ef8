/** What the structure of a sound file shows. No number in it rests on a header alone. */
export interface AudioStructure {
  /** Seconds that the header states. Undefined: it states none, or the structure is not that of one plain sound. */
  readonly statedSeconds: number | undefined;
  /** The longest that any header in it states, for a hold. */
  readonly maxStatedSeconds?: number | undefined;
  /** Seconds that a decoder gets out of the frames in the file: at least, and at most. */
  readonly decodedSeconds: readonly [least: number, most: number];
  /** Bytes of sound, and how many of them this codec may need per second. */
  readonly bytes: number;
  readonly rates: readonly [least: number, most: number];
}
