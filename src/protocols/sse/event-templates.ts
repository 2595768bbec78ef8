// Recognizes repeated events by their bytes. In most streams, consecutive events differ only in a
// few values. A parsed event becomes a template with holes in place of those values. An event that
// fits a template carries no new information, so it is forwarded without parsing.
//
// The replacement is safe because the bytes outside the holes are equal. Each hole contains exactly
// one JSON string, from opening to closing quote, or the digits of one number. Both texts therefore
// have the same tokens in the same places, except for the values. A hole contains no line feed. In
// a stream whose lines end in LF only, an event that fits therefore ends where its template ends.
import { unpooledConcat } from "../../lib/unpooled-buffer.ts";
import { endOfString, type Range } from "./json-bytes.ts";

/** Members whose values change between events and do not matter in passthrough mode. */
export interface TemplateFields {
  /** String members that contain response text. */
  readonly responseText: ReadonlySet<string>;
  /** String members that are not response text, or that repeat text of another member. */
  readonly otherText: ReadonlySet<string>;
  /** Members with integer values. */
  readonly numbers: ReadonlySet<string>;
}

const CR = 13;
const RESPONSE_TEXT = 0;
const OTHER_TEXT = 1;
const NUMBER = 2;

/**
 * A template: the segments between the holes, stored in one buffer. They are contiguous because
 * with 1,000 concurrent streams each stream's data has left the CPU caches by its next chunk. Each
 * segment ends with the byte before a hole, such as an opening quote, and begins with the byte
 * after a hole.
 */
interface Template {
  readonly bytes: Buffer;
  readonly ends: readonly number[];
  /** For each segment, the type of the hole before it. */
  readonly kinds: readonly number[];
  /**
   * Index of the segment that contains the model name, or -1 if there is none. `from` and `to` are
   * offsets in that segment.
   */
  readonly modelSegment: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Maximum number of templates per stream. Alternating text, reasoning, and tool calls need no more.
 */
const MAX_TEMPLATES = 4;
/**
 * Number of consecutive misses after which learning stops, because the events of the stream do not
 * repeat.
 */
const MAX_MISSES = 12;

export class EventTemplates {
  /**
   * Results of the last match: the offset after the event, the range of the model name, and the
   * number of bytes of response text.
   */
  end = 0;
  nameFrom = 0;
  nameTo = 0;
  textBytes = 0;
  readonly #holes: TemplateFields;
  #known: Template[] = [];
  #misses = 0;
  #scanned: Buffer | undefined;
  #cr = false;

  constructor(holes: TemplateFields) {
    this.#holes = holes;
  }

  /** Returns whether a template fits the event that begins at `at`. */
  find(b: Buffer, at: number): boolean {
    const known = this.#known;
    for (let i = 0; i < known.length; i++) {
      const template = known[i]!;
      if (!this.#fits(b, at, template)) continue;
      if (i > 0) this.#known = [template, ...known.filter((t) => t !== template)];
      this.#misses = 0;
      return true;
    }
    return false;
  }

  /**
   * Returns whether a chunk contains a CR. Each chunk is searched once. If the chunk contains a CR,
   * an event may end before its template does.
   */
  hasCr(b: Buffer): boolean {
    if (this.#scanned !== b) {
      this.#scanned = b;
      this.#cr = b.includes(CR);
    }
    return this.#cr;
  }

  /** Called at the end of a chunk. */
  endChunk(): void {
    this.#scanned = undefined;
  }

  /**
   * Drops all templates. Usage reports and finish events replace earlier reports and events. After
   * a different report, event, or service tier, a repeated event is therefore new information.
   */
  forget(): void {
    this.#known = [];
  }

  /**
   * Derives a template from an event. `json` is the offset of its object. `words` is the number of
   * bytes of text in the event, as the codec counts them. An event for which this function counts a
   * different number becomes no template. `model` is the range of the model name, for protocols in which every event contains
   * it.
   */
  learn(event: Buffer, json: number, words: number | undefined, model?: Range): void {
    if (this.#misses > MAX_MISSES) return;
    if (++this.#misses > MAX_MISSES) {
      this.#known = [];
      return;
    }
    const template = templateOf(event, json, this.#holes, model);
    if (words !== undefined && (!this.#fits(event, 0, template) || this.textBytes !== words))
      return;
    this.#known = [template, ...this.#known.slice(0, MAX_TEMPLATES - 1)];
  }

  #fits(b: Buffer, at: number, { bytes, ends, kinds, modelSegment, from, to }: Template): boolean {
    let words = 0;
    for (let i = 0, start = 0; i < ends.length; i++) {
      if (i > 0) {
        const hole = at;
        const kind = kinds[i]!;
        at = kind === NUMBER ? endOfNumber(b, hole) : endOfText(b, hole);
        if (at < 0) return false;
        if (kind === RESPONSE_TEXT) words += at - hole;
      }
      const till = ends[i]!;
      const next = at + till - start;
      if (!equalRange(b, at, next, bytes, start)) return false;
      if (i === modelSegment) {
        this.nameFrom = at + from;
        this.nameTo = at + to;
      }
      start = till;
      at = next;
    }
    this.textBytes = words;
    this.end = at;
    return true;
  }
}

/**
 * Number of bytes that are compared one by one. A native call costs as much as about 100 of these
 * comparisons.
 */
const BYTEWISE_LIMIT = 96;

/** Whether `b[at, end)` equals the bytes of `other` at `from`. */
function equalRange(b: Buffer, at: number, end: number, other: Buffer, from: number): boolean {
  if (end > b.length) return false;
  if (end - at > BYTEWISE_LIMIT) return b.compare(other, from, from + end - at, at, end) === 0;
  while (at < end) if (b[at++] !== other[from++]) return false;
  return true;
}

/**
 * Returns the offset of the quote that ends a hole. Returns -1 if the string does not end, or if it
 * contains a line feed, because an event ends with two line feeds.
 */
function endOfText(b: Buffer, hole: number): number {
  const near = Math.min(hole + BYTEWISE_LIMIT, b.length);
  for (let i = hole; i < near; i++) {
    const c = b[i];
    if (c === 34) return i;
    if (c === 10) return -1;
    if (c === 92) i++;
  }
  const end = endOfString(b, hole - 1);
  const lf = b.indexOf(10, hole);
  return end === b.length || (lf >= 0 && lf < end) ? -1 : end;
}

/** Maximum number of digits that every JSON reader parses exactly. */
const MAX_DIGITS = 15;

/**
 * Returns the offset after a number's last digit. Returns -1 if there is no number, or not one that
 * every JSON reader accepts.
 */
function endOfNumber(b: Buffer, hole: number): number {
  let i = hole;
  while (b[i]! >= 48 && b[i]! <= 57) i++;
  return i === hole || i - hole > MAX_DIGITS || (b[hole] === 48 && i > hole + 1) ? -1 : i;
}

function templateOf(event: Buffer, json: number, holes: TemplateFields, model?: Range): Template {
  const segments: Buffer[] = [];
  const ends: number[] = [];
  const kinds = [OTHER_TEXT];
  let name = { modelSegment: -1, from: 0, to: 0 };
  let from = 0;
  let length = 0;
  const cut = (to: number) => {
    if (model && model.from >= from && model.to <= to)
      name = { modelSegment: segments.length, from: model.from - from, to: model.to - from };
    segments.push(event.subarray(from, to));
    ends.push((length += to - from));
  };
  for (const hole of findHoles(event, json, holes)) {
    cut(hole.from);
    from = hole.to;
    kinds.push(hole.kind);
  }
  cut(event.length);
  return { bytes: unpooledConcat(segments), ends, kinds, ...name };
}

interface TemplateHole extends Range {
  readonly kind: number;
}

/** Yields the holes of an event: the contents of variable strings, and variable numbers. */
function* findHoles(
  b: Buffer,
  json: number,
  { responseText, otherText, numbers }: TemplateFields,
): Generator<TemplateHole> {
  let key = "";
  for (let i = json; i < b.length; i++) {
    if (b[i] !== 34) continue;
    const end = endOfString(b, i);
    let next = end + 1;
    while (b[next]! <= 32) next++;
    if (b[next] !== 58) {
      if (responseText.has(key)) yield { from: i + 1, to: end, kind: RESPONSE_TEXT };
      else if (otherText.has(key)) yield { from: i + 1, to: end, kind: OTHER_TEXT };
      i = end;
      continue;
    }
    key = b.toString("latin1", i + 1, end);
    i = next;
    if (!numbers.has(key)) continue;
    const from = next + 1;
    const to = endOfNumber(b, from);
    if (to > 0) yield { from, to, kind: NUMBER };
  }
}
