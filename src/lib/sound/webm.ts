// Measures WebM files, which are nested elements. A recording made by a browser contains no
// duration. The duration is then the timestamp of the last block. For Opus, the frames are counted
// instead, because the duration and the timestamp can be wrong.
import { opusPacketSeconds } from "./ogg.ts";
import { type AudioStructure, hasTagAt } from "./audio-structure.ts";

const SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const CLUSTER = 0x1f43b675;
const TIME = 0xe7;
const PIECE = 0xa3;
const PIECE_IN_GROUP = 0xa1;
const CODEC = 0x86;
/** Elements whose content is read: Segment, Info, Tracks, TrackEntry, Cluster, BlockGroup. */
const CONTAINERS: ReadonlySet<number> = new Set([
  0x18538067,
  0x1549a966,
  0x1654ae6b,
  0xae,
  CLUSTER,
  0xa0,
]);

const CLUSTER_BYTES = Buffer.from([0x1f, 0x43, 0xb6, 0x75]);
/** Nanoseconds per time unit if the file does not state the time unit. */
const USUAL_SCALE = 1_000_000;
/** Maximum seconds of one frame that is not Opus. No codec in this container has longer frames. */
const MOST_SECONDS = 1;
/**
 * Maximum number of elements in one file. A day of 20 ms frames is about 4 million elements, which
 * is larger than any request.
 */
const MOST_ELEMENTS = 1_000_000;
/** Maximum bytes per second of Opus. */
const FASTEST = 64_000;

export function readWebm(file: Buffer): AudioStructure | undefined {
  const all = new Elements(file);
  all.walk();
  if (all.lost) return undefined;
  const stated = (Math.max(all.duration ?? 0, all.last) * all.scale) / 1e9;
  const plain = all.whole && all.codecs === 1 && all.opus;
  const statedSeconds = plain ? ((all.duration ?? all.last) * all.scale) / 1e9 : undefined;
  return {
    statedSeconds,
    maxStatedSeconds: stated,
    decodedSeconds: [all.found, all.found],
    bytes: file.length,
    rates: [0, FASTEST],
  };
}

class Elements {
  readonly #file: Buffer;
  scale = USUAL_SCALE;
  duration: number | undefined;
  /** Timestamp of the last block, in time units. */
  last = 0;
  /** Number of tracks. `opus`: whether all tracks are Opus. */
  codecs = 0;
  opus = true;
  found = 0;
  /** Whether the file was read to its end without gaps. */
  whole = true;
  /** Whether the file has more elements than any real recording. */
  lost = false;
  #cluster = 0;

  constructor(file: Buffer) {
    this.#file = file;
  }

  walk(): void {
    const file = this.#file;
    let left = MOST_ELEMENTS;
    for (let at = 0; at < file.length;) {
      if (left-- === 0) {
        this.lost = true;
        return;
      }
      const one = elementAt(file, at);
      if (one) {
        this.#element(one);
        at = CONTAINERS.has(one.id) ? one.from : one.to;
        continue;
      }
      // A decoder that finds no element searches for the next cluster.
      this.whole = false;
      const next = file.indexOf(CLUSTER_BYTES, at + 1);
      if (next < 0) break;
      at = next;
    }
  }

  #element({ id, from, to }: Element): void {
    const file = this.#file;
    if (id === SCALE) this.scale = natural(file, from, to);
    else if (id === DURATION) this.duration = decimal(file, from, to);
    else if (id === TIME) this.#cluster = natural(file, from, to);
    else if (id === CODEC) {
      this.codecs++;
      this.opus &&= hasTagAt(file, from, "A_OPUS");
    } else if ((id === PIECE || id === PIECE_IN_GROUP) && from + 4 <= to) this.#piece(from);
  }

  /** Reads a block: the track number, the timestamp, and the number of frames. */
  #piece(at: number): void {
    const file = this.#file;
    const track = lengthAt(file, at, 8) ?? 1;
    const time = at + track;
    if (time + 3 > file.length) return;
    this.last = Math.max(this.last, this.#cluster + file.readInt16BE(time));
    const laced = (file[time + 2]! & 6) !== 0;
    const frames = laced ? (file[time + 3] ?? 0) + 1 : 1;
    // Laced frames can have different durations, so the total is not exact.
    if (laced) this.whole = false;
    const each =
      this.opus && !laced ? opusPacketSeconds(file, time + 3) : this.opus ? 0.12 : MOST_SECONDS;
    this.found += frames * each;
  }
}

interface Element {
  readonly id: number;
  readonly from: number;
  readonly to: number;
}

/** Returns the element at an offset. An element of unknown size extends to the end of the file. */
function elementAt(file: Buffer, at: number): Element | undefined {
  const end = file.length;
  const idLength = lengthAt(file, at, 4);
  if (idLength === undefined || at + idLength >= end) return undefined;
  const sizeAt = at + idLength;
  const sizeLength = lengthAt(file, sizeAt, 8);
  if (sizeLength === undefined) return undefined;
  let size = file[sizeAt]! & (0xff >> sizeLength);
  let unknown = size === 0xff >> sizeLength;
  for (let i = 1; i < sizeLength; i++) {
    size = size * 256 + file[sizeAt + i]!;
    unknown &&= file[sizeAt + i] === 0xff;
  }
  const from = sizeAt + sizeLength;
  return {
    id: file.readUIntBE(at, idLength),
    from,
    to: unknown ? end : Math.min(end, from + size),
  };
}

/**
 * Returns the length in bytes of a number. The leading zero bits of its first byte, plus one, give
 * the length.
 */
function lengthAt(file: Buffer, at: number, most: number): number | undefined {
  const first = file[at];
  if (first === undefined || first === 0) return undefined;
  const length = Math.clz32(first) - 23;
  return length <= most && at + length <= file.length ? length : undefined;
}

const natural = (file: Buffer, from: number, to: number): number =>
  to - from > 0 && to - from <= 6 ? file.readUIntBE(from, to - from) : 0;

const decimal = (file: Buffer, from: number, to: number): number | undefined =>
  to - from === 4 ? file.readFloatBE(from) : to - from === 8 ? file.readDoubleBE(from) : undefined;
