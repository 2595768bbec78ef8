// A stream repeats itself: chunk after chunk, everything is the same but a few words. An event that was parsed becomes a
// template with holes where its words stood; an event that fits says nothing that was not told already, and is passed on
// without a further look.
//
// Why that is safe: outside the holes the bytes are equal, and a hole is filled by exactly one JSON string, from the quote
// that opens it to the quote that closes it. So both texts have the same tokens in the same places, but for the words. No
// line feed stands in a hole: among lines that end in nothing else, an event that fits ends where its template does.
import { endOfString } from "../../sse/index.ts";

/** Members whose strings change from chunk to chunk and mean nothing to us. */
const WORDS = new Set([
  "content",
  "reasoning_content",
  "reasoning",
  "text",
  "refusal",
  "arguments",
  "input",
  "obfuscation",
]);

/** Strings that are not the answer's own, or say again what another one says. */
const BESIDE = new Set(["obfuscation", "text"]);

/**
 * What stands between the holes, one after the other in one piece of memory: of a thousand streams, none finds its own in
 * the processor's caches. Each segment ends in the quote that opens a hole, and begins with the one that closes it.
 */
interface Template {
  readonly bytes: Buffer;
  readonly ends: readonly number[];
  /** Of the hole before each segment: whether what fills it is of the answer. */
  readonly said: readonly boolean[];
  /** Which segment names the model, and where in it. */
  readonly named: number;
  readonly from: number;
  readonly to: number;
}

/** Text, reasoning and calls in turn need no more. */
const MOST = 4;
/** A stream in which no event is like another is not worth the trying. */
const PATIENCE = 12;

export class Templates {
  /** Of the event that was last found: one past its end, where its model's name stands, bytes of words in it. */
  end = 0;
  nameFrom = 0;
  nameTo = 0;
  words = 0;
  #known: Template[] = [];
  #inVain = 0;

  /** Whether one knows the event that begins here. */
  find(b: Buffer, at: number): boolean {
    const known = this.#known;
    for (let i = 0; i < known.length; i++) {
      const template = known[i]!;
      if (!this.#fits(b, at, template)) continue;
      if (i > 0) this.#known = [template, ...known.filter((t) => t !== template)];
      this.#inVain = 0;
      return true;
    }
    return false;
  }

  /** Of counts and of ends the last one holds: after another, or at another tier, one that was told before is news. */
  forget(): void {
    this.#known = [];
  }

  /** `json`: where its object begins; `model`: where the model's value stands. */
  learn(event: Buffer, json: number, model: { from: number; to: number }): void {
    if (this.#inVain > PATIENCE) return;
    if (++this.#inVain > PATIENCE) {
      this.#known = [];
      return;
    }
    const template = templateOf(event, json, model);
    if (template) this.#known = [template, ...this.#known.slice(0, MOST - 1)];
  }

  #fits(b: Buffer, at: number, { bytes, ends, said, named, from, to }: Template): boolean {
    let words = 0;
    for (let i = 0, start = 0; i < ends.length; i++) {
      if (i > 0) {
        const hole = at;
        at = endOfWords(b, hole);
        if (at < 0) return false;
        if (said[i]) words += at - hole;
      }
      const till = ends[i]!;
      const next = at + till - start;
      if (!same(b, at, next, bytes, start)) return false;
      if (i === named) {
        this.nameFrom = at + from;
        this.nameTo = at + to;
      }
      start = till;
      at = next;
    }
    this.words = words;
    this.end = at;
    return true;
  }
}

/** So many bytes are looked at one by one: a native call costs as much as a hundred of them. */
const NEAR = 96;

/** Whether [at, end) of `b` are the bytes of `other` at `from`. */
function same(b: Buffer, at: number, end: number, other: Buffer, from: number): boolean {
  if (end > b.length) return false;
  if (end - at > NEAR) return b.compare(other, from, from + end - at, at, end) === 0;
  while (at < end) if (b[at++] !== other[from++]) return false;
  return true;
}

/** The quote that ends a hole; -1 when the string does not end, or an event may end in it: a blank line is two line feeds. */
function endOfWords(b: Buffer, hole: number): number {
  const near = Math.min(hole + NEAR, b.length);
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

function templateOf(
  event: Buffer,
  json: number,
  model: { from: number; to: number },
): Template | undefined {
  const segments: Buffer[] = [];
  const ends: number[] = [];
  const said = [false];
  let name: { named: number; from: number; to: number } | undefined;
  let from = 0;
  let length = 0;
  const cut = (to: number) => {
    if (model.from >= from && model.to <= to)
      name = { named: segments.length, from: model.from - from, to: model.to - from };
    segments.push(event.subarray(from, to));
    ends.push((length += to - from));
  };
  for (const hole of holesIn(event, json)) {
    cut(hole.from);
    from = hole.to;
    said.push(!BESIDE.has(hole.key));
  }
  cut(event.length);
  return name && { bytes: Buffer.concat(segments), ends, said, ...name };
}

/** Bytes in which every event is known, on their way out with another name for the model. */
export class ModelRenamer {
  readonly #name: Buffer;
  /** Where the names stand, from and to in turn. */
  #at: number[] = [];
  #shorter = 0;

  constructor(model: string) {
    this.#name = Buffer.from(JSON.stringify(model));
  }

  /** The next one's place. */
  add(from: number, to: number): void {
    this.#at.push(from, to);
    this.#shorter += to - from;
  }

  /** [from, to) of these bytes, in one piece. */
  of(b: Buffer, from: number, to: number): Buffer {
    const at = this.#at;
    const name = this.#name;
    const out = Buffer.allocUnsafe(to - from - this.#shorter + (at.length >> 1) * name.length);
    let end = 0;
    for (let i = 0; i < at.length; i += 2) {
      end += b.copy(out, end, from, at[i]);
      end += name.copy(out, end);
      from = at[i + 1]!;
    }
    b.copy(out, end, from, to);
    at.length = 0;
    this.#shorter = 0;
    return out;
  }
}

/** The insides of the strings that change. */
function* holesIn(b: Buffer, json: number): Generator<{ from: number; to: number; key: string }> {
  let key = "";
  for (let i = json; i < b.length; i++) {
    if (b[i] !== 34) continue;
    const end = endOfString(b, i);
    let next = end + 1;
    while (b[next]! <= 32) next++;
    if (b[next] === 58) key = b.toString("latin1", i + 1, end);
    else if (WORDS.has(key)) yield { from: i + 1, to: end, key };
    i = b[next] === 58 ? next : end;
  }
}
