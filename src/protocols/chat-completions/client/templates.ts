// A stream repeats itself: chunk after chunk, everything is the same but a few words. An event that was parsed becomes a
// template with holes where its words stood; an event that fits says nothing that was not told already, and is passed on
// without a further look.
//
// Why that is safe: outside the holes the bytes are equal, and a hole is filled by exactly one JSON string, from the quote
// that opens it to the quote that closes it. So both texts have the same tokens in the same places, but for the words.
import { endOfString, type Gather } from "../../sse/index.ts";

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

interface Template {
  /** What stands between the holes; each ends in the quote that opens one, and begins with the one that closes it. */
  readonly segments: readonly Buffer[];
  /** Which segment names the model, and that segment with our name in it. */
  readonly named: number;
  readonly renamed: Buffer;
  /** Of the hole before each segment: whether what fills it is of the answer. */
  readonly said: readonly boolean[];
}

export interface Templates {
  /** Passes an event on that fits one, and says how many bytes of words it has; undefined when none fits. */
  pass(event: Buffer, out: Gather): number | undefined;
  /** `json`: where its object begins; `model`: where the model's value stands. */
  learn(event: Buffer, json: number, model: { from: number; to: number } | undefined): void;
}

/** Strings that are not the answer's own, or say again what another one says. */
const BESIDE = new Set(["obfuscation", "text"]);

/** Text, reasoning and calls in turn need no more. */
const MOST = 4;
/** A stream in which no event is like another is not worth the trying. */
const PATIENCE = 12;

export function templates(name: string): Templates {
  const quoted = Buffer.from(JSON.stringify(name));
  const seen = { words: 0 };
  let known: Template[] = [];
  let inVain = 0;
  return {
    pass(event, out) {
      for (let i = 0; i < known.length; i++) {
        const template = known[i]!;
        const at = placeIn(event, template, seen);
        if (at < 0) continue;
        if (i > 0) known = [template, ...known.filter((t) => t !== template)];
        inVain = 0;
        const { renamed, segments, named } = template;
        const end = at + segments[named]!.length;
        if (at > 0) out.add(event.subarray(0, at));
        out.add(renamed);
        if (end < event.length) out.add(event.subarray(end));
        return seen.words;
      }
      return undefined;
    },
    learn(event, json, model) {
      if (!model || inVain > PATIENCE) return;
      if (++inVain > PATIENCE) {
        known = [];
        return;
      }
      const template = templateOf(event, json, model, quoted);
      if (template) known = [template, ...known.slice(0, MOST - 1)];
    },
  };
}

/** Where the segment that names the model stands in an event that fits; -1 when it does not fit. */
function placeIn(
  event: Buffer,
  { segments, named, said }: Template,
  seen: { words: number },
): number {
  let at = 0;
  seen.words = 0;
  let place = -1;
  for (let i = 0; i < segments.length; i++) {
    if (i > 0) {
      const hole = at;
      at = endOfString(event, at - 1);
      if (said[i]) seen.words += at - hole;
    }
    const segment = segments[i]!;
    const end = at + segment.length;
    if (end > event.length || event.compare(segment, 0, segment.length, at, end) !== 0) return -1;
    if (i === named) place = at;
    at = end;
  }
  return at === event.length ? place : -1;
}

function templateOf(
  event: Buffer,
  json: number,
  model: { from: number; to: number },
  quoted: Buffer,
): Template | undefined {
  const segments: Buffer[] = [];
  const said = [false];
  let named = -1;
  let renamed: Buffer | undefined;
  let from = 0;
  const cut = (to: number) => {
    const segment = Buffer.from(event.subarray(from, to));
    if (model.from >= from && model.to <= to) {
      named = segments.length;
      renamed = Buffer.concat([
        segment.subarray(0, model.from - from),
        quoted,
        segment.subarray(model.to - from),
      ]);
    }
    segments.push(segment);
  };
  for (const hole of holesIn(event, json)) {
    cut(hole.from);
    from = hole.to;
    said.push(!BESIDE.has(hole.key));
  }
  cut(event.length);
  return renamed && { segments, named, renamed, said };
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
