// WebM is elements in elements. A recording that a browser makes states no length: then the last piece of sound states when it is
// heard. The frames of Opus are counted, because both may state anything.
import { opusPacketSeconds } from "./opus.ts";
import type { AudioStructure } from "./audio-structure.ts";
import { hasTagAt } from "./tags.ts";

const SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const CLUSTER = 0x1f43b675;
const TIME = 0xe7;
const PIECE = 0xa3;
const PIECE_IN_GROUP = 0xa1;
const CODEC = 0x86;
/** Segment, Info, Tracks, TrackEntry, Cluster, BlockGroup: what is inside is read. */
const CONTAINERS: ReadonlySet<number> = new Set([
  0x18538067,
  0x1549a966,
  0x1654ae6b,
  0xae,
  CLUSTER,
  0xa0,
]);

const CLUSTER_BYTES = Buffer.from([0x1f, 0x43, 0xb6, 0x75]);
/** Nanoseconds of one unit of time, where none is stated. */
const USUAL_SCALE = 1_000_000;
/** Seconds of one frame where it is not Opus: no codec of this container has longer ones. */
const MOST_SECONDS = 1;
/** In one file: a day of frames of 20 ms is four million, and takes more bytes than a request has. */
const MOST_ELEMENTS = 1_000_000;
/** Opus at its fastest. */
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
  /** When the last piece is heard. */
  last = 0;
  /** Tracks, and whether they are Opus. */
  codecs = 0;
  opus = true;
  found = 0;
  /** It was read to its end. */
  whole = true;
  /** It has more elements than any sound. */
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
      // A decoder that is lost searches for the next cluster.
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

  /** Behind the number of its track: when it is heard, and how many frames it has. */
  #piece(at: number): void {
    const file = this.#file;
    const track = lengthAt(file, at, 8) ?? 1;
    const time = at + track;
    if (time + 3 > file.length) return;
    this.last = Math.max(this.last, this.#cluster + file.readInt16BE(time));
    const laced = (file[time + 2]! & 6) !== 0;
    const frames = laced ? (file[time + 3] ?? 0) + 1 : 1;
    // Frames that are laced are of one length, or it is not known.
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

/** One whose size is not known goes on to the end. */
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

/** A number's first byte says how many it has: one for each zero before its first bit that is set. */
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
