// Measures MP4 files, which are nested boxes. Several boxes contain a duration, and each may be
// wrong, so the audio samples are counted too.
import { type AudioStructure, hasTagAt } from "./audio-structure.ts";

/** Maximum number of boxes in one file. */
const MOST_BOXES = 200_000;
/** Boxes that contain other boxes. */
const CONTAINERS: ReadonlySet<string> = new Set(
  "moov trak mdia minf stbl mvex moof traf edts".split(" "),
);
/**
 * Samples in one AAC frame. The second value applies if the upper half of the band is synthesized.
 */
const AAC_FRAME = [1_024, 2_048] as const;
const AAC_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
] as const;
/** Sample rate in Hz that is assumed if the rate is not known. */
const LEAST_RATE = 7_350;
/** Maximum bytes per second of AAC: 6,144 bits per channel and frame, two channels. */
const FASTEST = 96_000;
/**
 * Maximum number of edits with which a track counts as plain: one segment after some silence. A
 * longer edit list can play a segment several times.
 */
const MOST_EDITS = 2;

export function readMp4(file: Buffer): AudioStructure | undefined {
  const boxes = new Boxes(file);
  boxes.walk();
  const { frames, rate = LEAST_RATE, tracks, plain, bytes } = boxes;
  const found = [(frames * AAC_FRAME[0]) / rate, (frames * AAC_FRAME[1]) / rate] as const;
  if (boxes.lost) return undefined;
  const { maxStatedSeconds } = boxes;
  const statedSeconds =
    plain && tracks === 1 && boxes.rate !== undefined ? maxStatedSeconds : undefined;
  return {
    statedSeconds,
    maxStatedSeconds,
    decodedSeconds: found,
    bytes: bytes || file.length,
    rates: [0, FASTEST],
  };
}

class Boxes {
  readonly #file: Buffer;
  /** Longest duration in seconds that a box states. */
  maxStatedSeconds = 0;
  /** Number of audio frames. `bytes` is their total size if the file lists sizes. */
  frames = 0;
  bytes = 0;
  rate: number | undefined;
  /** Number of audio tracks. */
  tracks = 0;
  plain = true;
  /** Time units per second of the movie. */
  #scale = 0;
  #isSound = true;
  #left = MOST_BOXES;

  constructor(file: Buffer) {
    this.#file = file;
  }

  /** Whether the file has more boxes than any real recording. */
  get lost(): boolean {
    return this.#left < 0;
  }

  walk(): void {
    const file = this.#file;
    let at = 0;
    while (at + 8 <= file.length && this.#left-- > 0) {
      const short = file.readUInt32BE(at);
      const head = short === 1 ? 16 : 8;
      if (at + head > file.length) break;
      const size =
        short === 0 ? file.length - at : short === 1 ? Number(file.readBigUInt64BE(at + 8)) : short;
      if (size < head) break;
      const name = file.toString("latin1", at + 4, at + 8);
      const to = Math.min(file.length, at + size);
      this.#box(name, at + head, to);
      at = CONTAINERS.has(name) ? at + head : at + size;
    }
    // A file whose last box does not end at the end of the file is not plain.
    this.plain &&= at === file.length;
  }

  #box(name: string, from: number, to: number): void {
    if (name === "trak") this.#isSound = false;
    else if (name === "mvhd") this.#scale = this.#stated(from, to);
    else if (name === "mdhd") this.#stated(from, to);
    else if (name === "mehd") this.#pieces(from, to);
    else if (name === "elst") this.#edits(from, to);
    else if (name === "hdlr") this.#isSound = hasTagAt(this.#file, from + 8, "soun");
    else if (name === "stsd" && this.#isSound) this.#format(from, to);
    else if (name === "stsz" && this.#isSound) this.#sizes(from, to);
    else if (name === "trun")
      this.frames += Math.min(this.#number(from + 4, to), this.#file.length);
  }

  /** Reads the duration of a movie or a track. Returns its time units per second. */
  #stated(from: number, to: number): number {
    const file = this.#file;
    const wide = file[from] === 1;
    const at = from + (wide ? 20 : 12);
    if (at + (wide ? 12 : 8) > to) return 0;
    const scale = file.readUInt32BE(at);
    const length = wide ? Number(file.readBigUInt64BE(at + 4)) : file.readUInt32BE(at + 4);
    const unknown = length >= (wide ? 2 ** 63 : 0xffff_ffff);
    if (scale > 0 && !unknown)
      this.maxStatedSeconds = Math.max(this.maxStatedSeconds, length / scale);
    return scale;
  }

  /** Reads the duration of a fragmented movie. */
  #pieces(from: number, to: number): void {
    const file = this.#file;
    const wide = file[from] === 1;
    if (from + (wide ? 12 : 8) > to || this.#scale === 0) return;
    const length = wide ? Number(file.readBigUInt64BE(from + 4)) : file.readUInt32BE(from + 4);
    this.maxStatedSeconds = Math.max(this.maxStatedSeconds, length / this.#scale);
  }

  /** Reads the edit list: the segments that are played one after another. */
  #edits(from: number, to: number): void {
    const file = this.#file;
    const count = this.#number(from + 4, to);
    this.plain &&= count <= MOST_EDITS;
    const wide = file[from] === 1;
    const each = wide ? 20 : 12;
    let sum = 0;
    for (let i = 0, at = from + 8; i < count && at + each <= to; i++, at += each)
      sum += wide ? Number(file.readBigUInt64BE(at)) : file.readUInt32BE(at);
    if (this.#scale > 0) this.maxStatedSeconds = Math.max(this.maxStatedSeconds, sum / this.#scale);
  }

  /**
   * Reads the sample rate from the codec's own configuration, which decoders use. The rate in the
   * box is only informative.
   */
  #format(from: number, to: number): void {
    const file = this.#file;
    this.tracks++;
    if (!hasTagAt(file, from + 12, "mp4a")) return;
    const esds = file.subarray(from, to).indexOf("esds");
    if (esds < 0) return;
    for (let at = from + esds + 8; at + 4 < to; at++) {
      if (file[at] !== 5) continue;
      let data = at + 1;
      while (file[data] === 0x80 && data - at < 4) data++;
      const size = file[data]!;
      if (size < 2 || size > 64 || data + 3 > to) continue;
      const index = ((file[data + 1]! & 7) << 1) | (file[data + 2]! >> 7);
      const rate = AAC_RATES[index];
      if (rate !== undefined) this.rate = Math.min(this.rate ?? rate, rate);
      return;
    }
  }

  #sizes(from: number, to: number): void {
    const each = this.#number(from + 4, to);
    const frames = Math.min(this.#number(from + 8, to), this.#file.length);
    this.frames += frames;
    if (each > 0) this.bytes += each * frames;
    else
      for (let i = 0, at = from + 12; i < frames && at + 4 <= to; i++, at += 4)
        this.bytes += this.#file.readUInt32BE(at);
  }

  #number(at: number, to: number): number {
    return at + 4 <= to ? this.#file.readUInt32BE(at) : 0;
  }
}
