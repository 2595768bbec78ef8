// Measures Ogg files. Each page contains its position, so the last page contains the duration. The
// packets in the pages are counted, because a page can contain any position.
import { type AudioStructure, hasTagAt } from "./audio-structure.ts";

/** Marker of a page and its version. */
const PAGE = Buffer.from("OggS\0");
const OPUS_RATE = 48_000;
const HEAD = 27;
/** Maximum samples in a packet if the codec does not limit them. */
const MOST_SAMPLES = 65_536;
/** Maximum number of seconds that a decoder skips at the start. */
const MOST_SKIPPED = 2;
/**
 * Maximum number of packet segments in one file. No audio file with the maximum size of a request
 * has more.
 */
const MOST_PIECES = 2_000_000;
const MOST_HEADERS = 3;

interface Codec {
  readonly rate: number;
  /** Samples before the audio that are not played. */
  readonly skip: number;
  /** Minimum and maximum seconds in a packet. Each Opus packet contains its own duration. */
  readonly packet: readonly [least: number, most: number] | "opus";
  /** Maximum bytes per second. */
  readonly fastest: number;
}

export function readOgg(file: Buffer): AudioStructure | undefined {
  const pages = new Pages(file);
  pages.walk();
  const { codec, samples, single, lost } = pages;
  if (!codec || lost) return undefined;
  const stated = samples > 0 ? (samples - codec.skip) / codec.rate : undefined;
  const statedSeconds = single ? stated : undefined;
  return {
    statedSeconds,
    maxStatedSeconds: stated,
    decodedSeconds: pages.found,
    bytes: file.length,
    rates: [0, codec.fastest],
  };
}

class Pages {
  readonly #file: Buffer;
  /**
   * Codec of the first stream. If it is Opus, the codec of a later stream replaces it, because that
   * stream's packets can be longer.
   */
  codec: Codec | undefined;
  samples = 0;
  /** Whether the file is a single stream of consecutive pages. */
  single = true;
  found: [least: number, most: number] = [0, 0];
  #stream: number | undefined;
  #headers = 0;
  #left = MOST_PIECES;

  constructor(file: Buffer) {
    this.#file = file;
  }

  /** Whether the file has more segments than any real recording. */
  get lost(): boolean {
    return this.#left < 0;
  }

  walk(): void {
    const file = this.#file;
    let end = 0;
    for (let at = 0; (at = file.indexOf(PAGE, at)) >= 0 && at + HEAD <= file.length;) {
      if (this.lost) return;
      if (at !== end) this.single = false;
      const table = at + HEAD;
      const from = table + file[at + 26]!;
      if (from > file.length) break;
      end = this.#page(at, table, from);
      // If the next page is not at the expected offset, a decoder searches for one.
      at = file.indexOf(PAGE, end) === end ? end : at + 4;
    }
    if (end !== file.length) this.single &&= end > file.length;
  }

  /** Reads a page. Returns the offset of its end. */
  #page(at: number, table: number, from: number): number {
    const file = this.#file;
    this.#left -= from - table + 1;
    const stream = file.readUInt32LE(at + 14);
    const begins = (file[at + 5]! & 2) !== 0;
    if (begins) this.#begin(from);
    if (this.#stream === undefined) this.#stream = stream;
    else if (begins || stream !== this.#stream) this.single = false;
    const samples = Number(file.readBigInt64LE(at + 6));
    if (samples > 0) this.samples = Math.max(samples, this.single ? 0 : this.samples);
    let packet = from;
    let next = from;
    let continued = (file[at + 5]! & 1) !== 0;
    for (let i = table; i < from; i++) {
      next += file[i]!;
      if (file[i] === 255) continue;
      if (!continued) this.#packet(packet);
      continued = false;
      packet = next;
    }
    // The last packet continues on the next page. It is counted on the page on which it begins.
    if (from > table && file[from - 1] === 255 && !continued) this.#packet(packet);
    return next;
  }

  #begin(at: number): void {
    this.#headers = 0;
    const codec = codecAt(this.#file, at);
    if (!codec) this.single = false;
    else if (!this.codec || this.codec.packet === "opus") this.codec = codec;
  }

  #packet(at: number): void {
    if (!this.codec) return;
    if (this.#headers < MOST_HEADERS && isHeader(this.#file, at)) {
      this.#headers++;
      return;
    }
    this.#headers = MOST_HEADERS;
    const { packet } = this.codec;
    const each = packet === "opus" ? opusPacketSeconds(this.#file, at) : undefined;
    this.found[0] += each ?? (packet[0] as number);
    this.found[1] += each ?? (packet[1] as number);
  }
}

const HEADERS = [
  "OpusHead",
  "OpusTags",
  "\x01vorbis",
  "\x03vorbis",
  "\x05vorbis",
  "\x7fFLAC",
  "Speex   ",
];
const isHeader = (file: Buffer, at: number): boolean =>
  HEADERS.some((name) => hasTagAt(file, at, name));

function codecAt(file: Buffer, at: number): Codec | undefined {
  if (hasTagAt(file, at, "OpusHead") && at + 12 <= file.length) {
    const skip = Math.min(file.readUInt16LE(at + 10), MOST_SKIPPED * OPUS_RATE);
    return { rate: OPUS_RATE, skip, packet: "opus", fastest: 64_000 };
  }
  if (hasTagAt(file, at, "\x01vorbis") && at + 30 <= file.length) {
    const rate = file.readUInt32LE(at + 12);
    // Two Vorbis packets overlap by half a block, and a file has only a few short blocks.
    const most = 2 ** (file[at + 28]! >> 4) / 2 / rate;
    return plain(rate, [most * 0.4, most], 64_000);
  }
  if (hasTagAt(file, at, "\x7fFLAC") && at + 30 <= file.length) {
    const rate = file.readUIntBE(at + 27, 3) >>> 4;
    const most = Math.min(file.readUInt16BE(at + 19), MOST_SAMPLES) / rate;
    return plain(rate, [most * 0.9, most], 4_608_000);
  }
  if (hasTagAt(file, at, "Speex   ") && at + 68 <= file.length) {
    const rate = file.readUInt32LE(at + 36);
    const each = (file.readUInt32LE(at + 56) * file.readUInt32LE(at + 64)) / rate;
    return plain(rate, [each, each], 8_000);
  }
  return undefined;
}

const plain = (
  rate: number,
  packet: readonly [number, number],
  fastest: number,
): Codec | undefined =>
  rate > 0 && packet[1] > 0 ? { rate, skip: 0, packet, fastest } : undefined;

/**
 * Seconds of one frame, by the low bits of the configuration. There is one list each for speech,
 * hybrid, and music.
 */
const SPEECH = [0.01, 0.02, 0.04, 0.06] as const;
const HYBRID = [0.01, 0.02] as const;
const MUSIC = [0.0025, 0.005, 0.01, 0.02] as const;
/** Maximum seconds in a packet. */
const MOST_SECONDS = 0.12;

/**
 * Returns the duration of an Opus packet in seconds. Its first byte contains the frame duration and
 * the method by which the frames are counted.
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
