/**
 * Seconds of one frame, by the low bits of the configuration. One list each for speech, hybrid, and
 * music.
 */
const SPEECH = [0.01, 0.02, 0.04, 0.06] as const;
const HYBRID = [0.01, 0.02] as const;
const MUSIC = [0.0025, 0.005, 0.01, 0.02] as const;
/** Maximum seconds in a packet. */
const MOST_SECONDS = 0.12;

/**
 * Returns the duration of an Opus packet in seconds. Its first byte states the frame duration and
 * how the frames are counted.
 */
export function opusPacketSeconds(file: Buffer, at: number): number {
  const head = file[at];
  if (head === undefined) return 0;
  const config = head >> 3;
  const frame =
    config < 12 ? SPEECH[config & 3]! : config < 16 ? HYBRID[config & 1]! : MUSIC[config & 3]!;
  const code = head & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : (file[at + 1] ?? 0) & 63;
  return Math.min(frames * frame, MOST_SECONDS);
}
