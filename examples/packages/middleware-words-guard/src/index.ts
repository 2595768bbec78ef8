import { defineMiddleware, fail, type Fault, type ModelEvent } from "tollgate/plugin";

type Change = (text: string) => string;

/** Members whose texts are people's or a model's; in the second set whatever is in them. Names, ids and roles are not changed. */
const WORDS = new Set("text summary title context note prompt prompts inputs query".split(" "));
const WHOLE = new Set("raw rest documents input said description".split(" "));

/** The same value with its texts changed, in whatever part of a request or of an answer they stand. */
function changed(value: unknown, change: Change, name = "", whole = false): unknown {
  if (typeof value === "string") {
    if (name === "args") return inArgs(value, change);
    return whole || WORDS.has(name) ? change(value) : value;
  }
  if (Array.isArray(value)) return value.map((one: unknown) => changed(one, change, name, whole));
  if (value === null || typeof value !== "object" || Buffer.isBuffer(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(
    members.map(([key, one]) => [key, changed(one, change, key, whole || WHOLE.has(key))]),
  );
}

/** A tool's arguments: a letter that is written as \u0061 is read before it is looked at. */
function inArgs(args: string, change: Change): string {
  let read: unknown;
  try {
    read = JSON.parse(args);
  } catch {
    return change(args);
  }
  const made = JSON.stringify(changed(read, change, "", true));
  return made === JSON.stringify(read) ? args : made;
}

/** Longer words first: of two that begin alike the longer one is found. */
const finder = (words: readonly string[]): RegExp =>
  new RegExp(
    words
      .toSorted((a, b) => b.length - a.length)
      .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join("|"),
    "giu",
  );

/** A text in pieces, changed as the whole would be: what may yet become a word is held back. `tail`: a word's most letters. */
export function flowing(found: RegExp, tail: number, put: () => string) {
  let held = "";
  // What begins before `sure` is decided: nothing that follows makes it longer.
  const out = (sure: number): string => {
    let made = "";
    let at = 0;
    for (const { 0: word, index } of held.matchAll(found)) {
      if (index >= sure) break;
      made += held.slice(at, index) + put();
      at = index + word.length;
    }
    // A letter that is written as two is not cut in half.
    const half = sure < held.length && /[\uD800-\uDBFF]/.test(held[sure - 1] ?? "") ? 1 : 0;
    const to = Math.max(at, sure - half);
    made += held.slice(at, to);
    held = held.slice(to);
    return made;
  };
  const push = (text: string) => ((held += text), out(Math.max(0, held.length - tail + 1)));
  return { push, end: () => out(held.length) };
}

/** A tool's arguments wait for their end: no half of a JSON text can be read. */
function waiting(change: Change) {
  let held = "";
  return { push: (text: string) => ((held += text), ""), end: () => inArgs(held, change) };
}

function masker(found: RegExp, tail: number, mask: string, next: (event: ModelEvent) => void) {
  const open = new Map<number, ReturnType<typeof waiting>>();
  const masked = new Set<number>();
  return (event: ModelEvent): void => {
    const index = "index" in event ? event.index : -1;
    const put = () => (masked.add(index), mask);
    const change: Change = (text) => text.replace(found, put);
    if (event.type === "open")
      open.set(index, event.block.type === "call" ? waiting(change) : flowing(found, tail, put));
    const said = event.type === "delta" ? event.text : undefined;
    const text = said === undefined ? "" : open.get(index)!.push(said);
    const last = event.type === "close" ? open.get(index)!.end() : "";
    // Without probabilities: they spell the words, token by token.
    if (text + last !== "") next({ type: "delta", index, text: text + last });
    // What was signed is not what is said any more.
    const unsigned = event.type === "proof" && masked.has(index);
    if (said === undefined && !unsigned) next(changed(event, change) as ModelEvent);
  };
}

/** Beside an answer as it passes: what it says is one text, also where a provider makes several blocks of it. */
function stopper(found: RegExp, tail: number, stop: (fault: Fault) => void) {
  const calls = new Map<number, string>();
  let last = "";
  const look: Change = (text) => {
    if (text.search(found) >= 0) stop({ kind: "content_policy", message: STOPPED, code: CODE });
    return text;
  };
  return (event: ModelEvent): void => {
    const args = "index" in event ? calls.get(event.index) : undefined;
    if (event.type === "open" && event.block.type === "call") calls.set(event.index, "");
    if (event.type === "delta" && args !== undefined) calls.set(event.index, args + event.text);
    else if (event.type === "delta") last = look(last + event.text).slice(-tail);
    else if (event.type === "close") inArgs(args ?? "", look);
    else changed(event, look);
  };
}

const WORD = { type: "string", minLength: 1, maxLength: 64 } as const;
const CODE = "word_not_allowed";
const STOPPED = "The answer was stopped at a word.";
const REFUSED = "This request has a word that may not be used here.";

export default defineMiddleware({
  api: 1,
  name: "words-guard",
  summary: "Masks listed words in what is asked and answered, or refuses and stops at them",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["words"],
    properties: {
      words: { type: "array", minItems: 1, items: WORD, description: "Words that may not be used" },
      does: { enum: ["mask", "stop"], default: "mask", description: "What is done at one" },
      mask: { type: "string", default: "[masked]", description: "What stands in its place" },
    },
  },
  setup({ words, does, mask }) {
    const found = finder(words);
    const tail = Math.max(...words.map((word) => word.length));
    const masked: Change = (text) => text.replace(found, () => mask);
    if (does === "mask")
      return {
        rewrite: (request) => changed(request, masked) as typeof request,
        event: (_call, next) => masker(found, tail, mask, next),
      };
    return {
      inspect(request) {
        changed(request, (text) =>
          text.search(found) < 0 ? text : fail("content_policy", REFUSED, { code: CODE }),
        );
      },
      watch: (_call, stop) => stopper(found, tail, stop),
    };
  },
});
