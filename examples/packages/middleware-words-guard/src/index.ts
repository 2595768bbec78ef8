import { defineMiddleware, fail, type Fault, type ModelEvent } from "tollgate/plugin";

type Change = (text: string) => string;

/** Members that contain text of users or models. Names, IDs, and roles are not changed. */
const TEXT_MEMBERS = new Set(
  "text summary title context note prompt prompts inputs query".split(" "),
);
/** Members in which every string is text. */
const TEXT_TREES = new Set("raw rest documents input said description".split(" "));

/** Returns a copy of a request or event with all its texts changed. */
function changeTexts(value: unknown, change: Change, name = "", isTree = false): unknown {
  if (typeof value === "string") {
    if (name === "args") return changeArgs(value, change);
    return isTree || TEXT_MEMBERS.has(name) ? change(value) : value;
  }
  if (Array.isArray(value))
    return value.map((one: unknown) => changeTexts(one, change, name, isTree));
  if (value === null || typeof value !== "object" || Buffer.isBuffer(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(
    members.map(([key, one]) => [
      key,
      changeTexts(one, change, key, isTree || TEXT_TREES.has(key)),
    ]),
  );
}

/** Changes the arguments of a tool call. They are parsed first, because a letter can be written as \u0061. */
function changeArgs(args: string, change: Change): string {
  let read: unknown;
  try {
    read = JSON.parse(args);
  } catch {
    return change(args);
  }
  const result = JSON.stringify(changeTexts(read, change, "", true));
  return result === JSON.stringify(read) ? args : result;
}

/** Returns a pattern that matches any of the words. Longer words precede their prefixes. */
const finder = (words: readonly string[]): RegExp =>
  new RegExp(
    words
      .toSorted((a, b) => b.length - a.length)
      .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join("|"),
    "giu",
  );

/**
 * Replaces words in a text that arrives in chunks, with the same result as for the whole text. The end of the text is held back
 * while it may be the beginning of a word. `maxLength` is the length of the longest word.
 */
export function createReplacer(found: RegExp, maxLength: number, put: () => string) {
  let held = "";
  // A match that starts before `end` is final: later text cannot make it longer.
  const flush = (end: number): string => {
    let done = "";
    let at = 0;
    for (const { 0: word, index } of held.matchAll(found)) {
      if (index >= end) break;
      done += held.slice(at, index) + put();
      at = index + word.length;
    }
    // A surrogate pair is not split.
    const half = end < held.length && /[\uD800-\uDBFF]/.test(held[end - 1] ?? "") ? 1 : 0;
    const to = Math.max(at, end - half);
    done += held.slice(at, to);
    held = held.slice(to);
    return done;
  };
  const push = (text: string) => ((held += text), flush(Math.max(0, held.length - maxLength + 1)));
  return { push, end: () => flush(held.length) };
}

/** Collects the arguments of a tool call until they are complete, because partial JSON cannot be parsed. */
function createArgsReplacer(change: Change) {
  let held = "";
  return { push: (text: string) => ((held += text), ""), end: () => changeArgs(held, change) };
}

function createMasker(
  found: RegExp,
  maxLength: number,
  mask: string,
  next: (event: ModelEvent) => void,
) {
  const open = new Map<number, ReturnType<typeof createArgsReplacer>>();
  const masked = new Set<number>();
  return (event: ModelEvent): void => {
    const index = "index" in event ? event.index : -1;
    const put = () => (masked.add(index), mask);
    const change: Change = (text) => text.replace(found, put);
    if (event.type === "open")
      open.set(
        index,
        event.block.type === "call"
          ? createArgsReplacer(change)
          : createReplacer(found, maxLength, put),
      );
    const delta = event.type === "delta" ? event.text : undefined;
    const text = delta === undefined ? "" : open.get(index)!.push(delta);
    const last = event.type === "close" ? open.get(index)!.end() : "";
    // Token probabilities are omitted, because they contain the words.
    if (text + last !== "") next({ type: "delta", index, text: text + last });
    // The signature of a changed block is invalid.
    const isInvalidProof = event.type === "proof" && masked.has(index);
    if (delta === undefined && !isInvalidProof) next(changeTexts(event, change) as ModelEvent);
  };
}

/** Stops a response at a word. Its text is checked as one, even if the provider splits it into several blocks. */
function createStopper(found: RegExp, maxLength: number, stop: (fault: Fault) => void) {
  const calls = new Map<number, string>();
  let last = "";
  const check: Change = (text) => {
    if (text.search(found) >= 0) stop({ kind: "content_policy", message: STOPPED, code: CODE });
    return text;
  };
  return (event: ModelEvent): void => {
    const args = "index" in event ? calls.get(event.index) : undefined;
    if (event.type === "open" && event.block.type === "call") calls.set(event.index, "");
    if (event.type === "delta" && args !== undefined) calls.set(event.index, args + event.text);
    else if (event.type === "delta") last = check(last + event.text).slice(-maxLength);
    else if (event.type === "close") changeArgs(args ?? "", check);
    else changeTexts(event, check);
  };
}

const WORD = { type: "string", minLength: 1, maxLength: 64 } as const;
const CODE = "word_not_allowed";
const STOPPED = "The response was stopped at a word that is not allowed.";
const REJECTED = "The request contains a word that is not allowed.";

export default defineMiddleware({
  api: 1,
  name: "words-guard",
  summary: "Masks listed words in requests and responses, or rejects and stops them",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["words"],
    properties: {
      words: {
        type: "array",
        minItems: 1,
        items: WORD,
        description: "Words to mask, or to stop the request at",
      },
      action: {
        enum: ["mask", "stop"],
        default: "mask",
        description: "mask replaces the words. stop rejects the request or ends the response",
      },
      mask: { type: "string", default: "[masked]", description: "Replacement for each word" },
    },
  },
  setup({ words, action, mask }) {
    const found = finder(words);
    const maxLength = Math.max(...words.map((word) => word.length));
    const masked: Change = (text) => text.replace(found, () => mask);
    if (action === "mask")
      return {
        rewrite: (request) => changeTexts(request, masked) as typeof request,
        event: (_call, next) => createMasker(found, maxLength, mask, next),
      };
    return {
      inspect(request) {
        changeTexts(request, (text) =>
          text.search(found) < 0 ? text : fail("content_policy", REJECTED, { code: CODE }),
        );
      },
      watch: (_call, stop) => createStopper(found, maxLength, stop),
    };
  },
});
