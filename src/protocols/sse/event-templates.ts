// A stream repeats itself: event after event, everything is the same but a few words. An event that was looked into becomes a
// template with holes where its words stood; an event that fits says nothing that was not told already, and is passed on
// without a further look.
//
// Why that is safe: outside the holes the bytes are equal, and a hole is filled by exactly one JSON string, from the quote
// that opens it to the quote that closes it, or by the digits of one number. So both texts have the same tokens in the same places, but for the words. No
// line feed stands in a hole: among lines that end in nothing else, an event that fits ends where its template does.
import { unpooledConcat } from "../../lib/unpooled-buffer.ts";
import { endOfString, type Range } from "./json-bytes.ts";

/** Members whose values change from event to event and mean nothing to a relay. */
export interface TemplateFields {
  /** Strings of the answer. */
  readonly responseText: ReadonlySet<string>;
  /** Strings that are not the answer's own, or say again what another one says. */
  readonly otherText: ReadonlySet<string>;
  /** Whole numbers. */
  readonly numbers: ReadonlySet<string>;
}

const CR = 13;
const RESPONSE_TEXT = 0;
const OTHER_TEXT = 1;
const NUMBER = 2;

/**
 * What stands between the holes, one after the other in one piece of memory: of a thousand streams, none finds its own in
 * the processor's caches. Each segment ends in what opens a hole, a quote or what stands before a number, and begins with what closes it.
 */
interface Template {
  readonly bytes: Buffer;
  readonly ends: readonly number[];
  /** Of the hole before each segment: what fills it. */
  readonly kinds: readonly number[];
  /** Which segment names the model, and where in it; -1 where none does. */
  readonly modelSegment: number;
  readonly from: number;
  readonly to: number;
}

/** Text, reasoning and calls in turn need no more. */
const MAX_TEMPLATES = 4;
/** A stream in which no event is like another is not worth the trying. */
const MAX_MISSES = 12;

export class EventTemplates {
  /** Of the event that was last found: one past its end, where its model's name stands, bytes of words in it. */
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

  /** Whether one knows the event that begins here. */
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

  /** Whether lines may end in CR in a piece, which is searched once: then an event may end before its template does. */
  hasCr(b: Buffer): boolean {
    if (this.#scanned !== b) {
      this.#scanned = b;
      this.#cr = b.includes(CR);
    }
    return this.#cr;
  }

  /** A piece is over. */
  endChunk(): void {
    this.#scanned = undefined;
  }

  /** Of counts and of ends the last one holds: after another, or at another tier, one that was told before is news. */
  forget(): void {
    this.#known = [];
  }

  /**
   * `json`: where its object begins; `words`: bytes of text in it, as the relay counts them: what is counted otherwise here is
   * not learned. `model`: where the model's value stands, on a wire whose every event names it.
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

/** So many bytes are looked at one by one: a native call costs as much as a hundred of them. */
const BYTEWISE_LIMIT = 96;

/** Whether [at, end) of `b` are the bytes of `other` at `from`. */
function equalRange(b: Buffer, at: number, end: number, other: Buffer, from: number): boolean {
  if (end > b.length) return false;
  if (end - at > BYTEWISE_LIMIT) return b.compare(other, from, from + end - at, at, end) === 0;
  while (at < end) if (b[at++] !== other[from++]) return false;
  return true;
}

/** The quote that ends a hole; -1 when the string does not end, or an event may end in it: a blank line is two line feeds. */
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

/** So many digits are a number in every reader. */
const MAX_DIGITS = 15;

/** One past a number's last digit; -1 when there is none, or it is none that every reader reads. */
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

/** The insides of the strings that change, and the numbers. */
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
