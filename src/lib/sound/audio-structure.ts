/**
 * Measurements of an audio file's structure. Only `statedSeconds` and `maxStatedSeconds` are taken
 * from headers.
 */
export interface AudioStructure {
  /**
   * Duration in seconds that the header states. Undefined: none is stated, or the file is not a
   * single plain audio stream.
   */
  readonly statedSeconds: number | undefined;
  /** Longest duration in seconds that any header in the file states, for a reservation. */
  readonly maxStatedSeconds?: number | undefined;
  /** Minimum and maximum duration in seconds that a decoder gets from the frames in the file. */
  readonly decodedSeconds: readonly [least: number, most: number];
  /** Bytes of audio. `rates` is how many bytes per second the codec can use. */
  readonly bytes: number;
  readonly rates: readonly [least: number, most: number];
}
