// Writes chunks as events without a name or, if the client did not request events, as one growing
// JSON list.
//
// Google's SDKs drop a whole turn from a chat's history if one chunk of its stream has no
// candidate, content, or part. Older SDKs also drop it if a part is an empty text. Every chunk that
// is written here therefore has exactly one part, which is not empty. The finish reason, sources,
// and signatures arrive after the text that they belong to. The last character of a text and the
// last part of any other type are therefore held back until the data that must be sent with them is
// known.
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { isObject } from "../../json-values.ts";
import { isJsonListStream } from "../constants.ts";
import { signedPart } from "./content.ts";

/** Separator between the elements of a list. */
export const NEXT = ",\r\n";

/**
 * Characters that JSON allows unescaped. Older SDKs treat each of them as the end of a line, and so
 * of the event.
 */
const LINE_ENDS = /[\u0085\u2028\u2029]/;
const EACH_LINE_END = new RegExp(LINE_ENDS, "g");
const escaped = (end: string): string => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** The last part, which has not been sent yet. */
interface HeldPart {
  part: JsonObject;
  /** Members of the candidate. */
  candidateFields: JsonObject;
}

export class ChunkWriter {
  readonly #write: (text: string) => void;
  readonly #isJsonList: boolean;
  /** Members at the end of every chunk. */
  readonly #tail: string;
  #begun = false;
  /** The last character of a text. At most one of this and `#held` is set. */
  #lastCharacter = "";
  #thought = false;
  #held: HeldPart | undefined;
  /** Members of the candidate that are sent with the next part. */
  #waiting: JsonObject | undefined;

  constructor(write: (text: string) => void, to: ResponseContext) {
    this.#write = write;
    this.#isJsonList = isJsonListStream(to.body);
    this.#tail = `"modelVersion":${JSON.stringify(to.model)},"responseId":${JSON.stringify(to.id)}}`;
  }

  /** Writes text, which must not be empty. Hot path: most of a stream is text. */
  text(text: string, thought: boolean): void {
    if (this.#waiting) return this.part({ text, ...(thought && { thought: true }) });
    if (this.#held || this.#thought !== thought) this.#flush();
    const pending = this.#lastCharacter + text;
    const end = pending.length - lastLength(pending);
    if (end > 0) this.#text(pending.slice(0, end), thought);
    this.#lastCharacter = pending.slice(end);
    this.#thought = thought;
  }

  part(part: JsonObject): void {
    this.#flush();
    this.#held = { part, candidateFields: this.#waiting ?? {} };
    this.#waiting = undefined;
  }

  /** Adds members of the candidate to the last part, or to the next one if there is none. */
  addToCandidate(more: JsonObject): void {
    const held = this.#last();
    if (held) held.candidateFields = mergeWithLists(held.candidateFields, more);
    else this.#waiting = this.#waiting ? mergeWithLists(this.#waiting, more) : more;
  }

  /**
   * Adds the signature to the last part, if that is unsigned text or an unsigned thought.
   * Otherwise, writes `alone` with the signature.
   */
  sign(signature: string, alone: JsonObject): void {
    const held = this.#last();
    if (held && isUnsigned(held.part, alone["thought"] === true))
      held.part = signedPart(held.part, signature);
    else this.part(signedPart(alone, signature));
  }

  /** Ends the response. `candidate` and `more` are sent with the last part. */
  end(candidate: JsonObject, more: JsonObject): void {
    // A response without any part has one empty text, as Google's own responses do.
    if (!this.#last()) this.part({ text: "" });
    const held = this.#held!;
    this.#held = undefined;
    this.#put(this.#chunk(held.part, { ...candidate, ...held.candidateFields }, more));
    if (this.#isJsonList) this.#write("]");
  }

  /** Writes an error as an event. A list is closed after it, so that the client can parse it. */
  fail(body: JsonObject): void {
    this.#flush();
    this.endWith(body);
  }

  /** Writes a chunk that was created elsewhere. */
  chunk(chunk: JsonObject): void {
    this.#put(JSON.stringify(chunk));
  }

  /** Writes a last chunk that the caller created. */
  endWith(chunk: JsonObject): void {
    this.chunk(chunk);
    if (this.#isJsonList) this.#write("]");
  }

  /** Returns the held text or part as a part. */
  #last(): HeldPart | undefined {
    if (this.#lastCharacter === "") return this.#held;
    const part: JsonObject = { text: this.#lastCharacter, ...(this.#thought && { thought: true }) };
    this.#lastCharacter = "";
    return (this.#held = { part, candidateFields: {} });
  }

  #flush(): void {
    const held = this.#held;
    const letter = this.#lastCharacter;
    this.#held = undefined;
    this.#lastCharacter = "";
    if (letter !== "") this.#text(letter, this.#thought);
    if (held) this.#put(this.#chunk(held.part, held.candidateFields));
  }

  #text(textContent: string, thought: boolean): void {
    this.#put(
      `{"candidates":[{"content":{"parts":[{"text":${JSON.stringify(textContent)}${thought ? ',"thought":true' : ""}}],"role":"model"},"index":0}],${this.#tail}`,
    );
  }

  #chunk(part: JsonObject, candidate: JsonObject, more: JsonObject = {}): string {
    const content = { parts: [part], role: "model" };
    const json = JSON.stringify({ candidates: [{ content, index: 0, ...candidate }], ...more });
    return `${json.slice(0, -1)},${this.#tail}`;
  }

  #put(text: string): void {
    const json = LINE_ENDS.test(text) ? text.replace(EACH_LINE_END, escaped) : text;
    if (!this.#isJsonList) return this.#write(`data: ${json}\n\n`);
    this.#write(`${this.#begun ? NEXT : "["}${json}`);
    this.#begun = true;
  }
}

/** Whether a part is unsigned text of this type. */
const isUnsigned = (part: JsonObject, thought: boolean): boolean =>
  Boolean(part["text"]) &&
  (part["thought"] === true) === thought &&
  part["thoughtSignature"] === undefined;

/** Merges two objects. Lists in them are concatenated. */
function mergeWithLists(one: JsonObject, other: JsonObject): JsonObject {
  const both: Record<string, Opt<Json>> = { ...one };
  for (const name in other) {
    const [before, after] = [both[name], other[name]];
    if (Array.isArray(before) && Array.isArray(after)) both[name] = [...before, ...after];
    else both[name] = isObject(before) && isObject(after) ? mergeWithLists(before, after) : after;
  }
  return both;
}

/**
 * Returns the number of UTF-16 units of the last character, so that surrogate pairs are never
 * split.
 */
function lastLength(text: string): 1 | 2 {
  const last = text.charCodeAt(text.length - 1);
  return text.length > 1 && last >= 0xdc00 && last <= 0xdfff ? 2 : 1;
}
