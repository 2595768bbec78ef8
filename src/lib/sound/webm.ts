// WebM is elements in elements. Recordings that a browser makes do not say how long they are: then the last piece of sound says
// when it is heard.

const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const CLUSTER = 0x1f43b675;
const TIME = 0xe7;
const PIECE = 0xa3;
const GROUP = 0xa0;
const PIECE_IN_GROUP = 0xa1;

const CLUSTER_BYTES = Buffer.from([0x1f, 0x43, 0xb6, 0x75]);
const MOST_ELEMENTS = 100_000;
/** Nanoseconds of one unit of time, where it is not said. */
const USUAL_SCALE = 1_000_000;

interface Element {
  readonly id: number;
  readonly from: number;
  readonly to: number;
}

export function secondsOfWebm(file: Buffer): number | undefined {
  const whole = { id: 0, from: 0, to: file.length };
  const segment = elements(file, whole).find(({ id }) => id === SEGMENT);
  if (!segment) return undefined;
  let scale = USUAL_SCALE;
  let duration: number | undefined;
  for (const one of elements(file, segment)) {
    if (one.id === CLUSTER) break;
    if (one.id !== INFO) continue;
    for (const { id, from, to } of elements(file, one))
      if (id === SCALE) scale = natural(file, from, to);
      else if (id === DURATION) duration = decimal(file, from, to);
  }
  const units = duration ?? lastPiece(file);
  return units === undefined ? undefined : (units * scale) / 1e9;
}

/** When the last cluster's last piece is heard. */
function lastPiece(file: Buffer): number | undefined {
  const at = file.lastIndexOf(CLUSTER_BYTES);
  const cluster = at < 0 ? undefined : elementAt(file, at, file.length);
  if (!cluster) return undefined;
  let begins = 0;
  let last = 0;
  for (const { id, from, to } of elements(file, cluster)) {
    if (id === TIME) begins = natural(file, from, to);
    const piece =
      id === PIECE
        ? from
        : id === GROUP
          ? elements(file, { id, from, to }).find((one) => one.id === PIECE_IN_GROUP)?.from
          : undefined;
    // Behind the number of its track.
    if (piece !== undefined && piece + 3 <= to) last = Math.max(last, file.readInt16BE(piece + 1));
  }
  return begins + last;
}

function elements(file: Buffer, { from, to }: Element): readonly Element[] {
  const found: Element[] = [];
  for (let at = from; at < to && found.length < MOST_ELEMENTS;) {
    const one = elementAt(file, at, to);
    if (!one) break;
    found.push(one);
    at = one.to;
  }
  return found;
}

/** One whose size is not known goes on to the end. */
function elementAt(file: Buffer, at: number, end: number): Element | undefined {
  const idLength = lengthAt(file, at, 4);
  if (idLength === undefined || at + idLength >= end) return undefined;
  const sizeAt = at + idLength;
  const sizeLength = lengthAt(file, sizeAt, 8);
  if (sizeLength === undefined || sizeAt + sizeLength > end) return undefined;
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
