// Chunks on their way out: events without a name, or, where a client did not ask for events, one JSON list that grows.
//
// Google's SDKs drop a whole turn from the history of a chat if one chunk of its stream has no candidate, no content or no
// part; older ones also if a part is an empty text. So every chunk that is written here has exactly one part with something in
// it. The reason for the end, sources and signatures come after the words that they belong to: the last character of a text and
// the last part of any other kind are held back until it is known what goes out beside them.
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { isObject } from "../../json-values.ts";
import { isJsonListStream } from "../constants.ts";
import { signedPart } from "./content.ts";

/** Between the elements of a list. */
export const NEXT = ",\r\n";

/** JSON may hold these as they are. To older SDKs each of them ends a line, and with it the event. */
const LINE_ENDS = /[\u0085\u2028\u2029]/;
const EACH_LINE_END = new RegExp(LINE_ENDS, "g");
const escaped = (end: string): string => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** The end of what was written, which has not left. */
interface HeldPart {
  part: JsonObject;
  /** Members of the candidate. */
  candidateFields: JsonObject;
}

export class ChunkWriter {
  readonly #write: (text: string) => void;
  readonly #isJsonList: boolean;
  /** What every chunk ends with. */
  readonly #tail: string;
  #begun = false;
  /** The last character of a text. At most one of this and `#held` is set. */
  #lastCharacter = "";
  #thought = false;
  #held: HeldPart | undefined;
  /** Members of the candidate that go out with the next part. */
  #waiting: JsonObject | undefined;

  constructor(write: (text: string) => void, to: ResponseContext) {
    this.#write = write;
    this.#isJsonList = isJsonListStream(to.body);
    this.#tail = `"modelVersion":${JSON.stringify(to.model)},"responseId":${JSON.stringify(to.id)}}`;
  }

  /** The hot path: most of a stream is this. `text` is not empty. */
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

  /** Members of the candidate that belong to the last part, or to the next one if there is none. */
  addToCandidate(more: JsonObject): void {
    const held = this.#last();
    if (held) held.candidateFields = mergeWithLists(held.candidateFields, more);
    else this.#waiting = this.#waiting ? mergeWithLists(this.#waiting, more) : more;
  }

  /** Signs the last words of a text or a thought; `alone` is the part if there are none. */
  sign(signature: string, alone: JsonObject): void {
    const held = this.#last();
    if (held && isUnsigned(held.part, alone["thought"] === true))
      held.part = signedPart(held.part, signature);
    else this.part(signedPart(alone, signature));
  }

  /** The end of the answer: `candidate` and `more` go out with the last part. */
  end(candidate: JsonObject, more: JsonObject): void {
    // An answer without any part has one empty text, as Google's own has.
    if (!this.#last()) this.part({ text: "" });
    const held = this.#held!;
    this.#held = undefined;
    this.#put(this.#chunk(held.part, { ...candidate, ...held.candidateFields }, more));
    if (this.#isJsonList) this.#write("]");
  }

  /** An event that is an error. A list ends after it, so that what came can be read. */
  fail(body: JsonObject): void {
    this.#flush();
    this.endWith(body);
  }

  /** One that was written elsewhere. */
  chunk(chunk: JsonObject): void {
    this.#put(JSON.stringify(chunk));
  }

  /** The same, and the last. */
  endWith(chunk: JsonObject): void {
    this.chunk(chunk);
    if (this.#isJsonList) this.#write("]");
  }

  /** What is held, as a part. */
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

/** Words of this kind that have no signature yet. */
const isUnsigned = (part: JsonObject, thought: boolean): boolean =>
  Boolean(part["text"]) &&
  (part["thought"] === true) === thought &&
  part["thoughtSignature"] === undefined;

/** Both; lists in them are one after the other. */
function mergeWithLists(one: JsonObject, other: JsonObject): JsonObject {
  const both: Record<string, Opt<Json>> = { ...one };
  for (const name in other) {
    const [before, after] = [both[name], other[name]];
    if (Array.isArray(before) && Array.isArray(after)) both[name] = [...before, ...after];
    else both[name] = isObject(before) && isObject(after) ? mergeWithLists(before, after) : after;
  }
  return both;
}

/** Units of the last character: no half of one may leave. */
function lastLength(text: string): 1 | 2 {
  const last = text.charCodeAt(text.length - 1);
  return text.length > 1 && last >= 0xdc00 && last <= 0xdfff ? 2 : 1;
}
