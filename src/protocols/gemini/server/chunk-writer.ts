// Chunks on their way out: events without a name, or, where a client did not ask for events, one JSON list that grows.
//
// Google's SDKs drop a whole turn from the history of a chat if one chunk of its stream has no candidate, no content or no
// part; older ones also if a part is an empty text. So every chunk that is written here has exactly one part with something in
// it. The reason for the end, sources and signatures come after the words that they belong to: the last character of a text and
// the last part of any other kind are held back until it is known what goes out beside them.
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { isObject } from "../../json.ts";
import { isListed } from "../words.ts";
import { signedPart } from "./content.ts";

/** Between the elements of a list. */
export const NEXT = ",\r\n";

/** JSON may hold these as they are. To older SDKs each of them ends a line, and with it the event. */
const LINE_ENDS = /[\u0085\u2028\u2029]/;
const EACH_LINE_END = new RegExp(LINE_ENDS, "g");
const escaped = (end: string): string => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** The end of what was written, which has not left. */
interface Held {
  part: JsonObject;
  /** Members of the candidate. */
  more: JsonObject;
}

export class ChunkWriter {
  readonly #write: (text: string) => void;
  readonly #listed: boolean;
  /** What every chunk ends with. */
  readonly #tail: string;
  #begun = false;
  /** The last character of a text. At most one of this and `#held` is set. */
  #letter = "";
  #thought = false;
  #held: Held | undefined;
  /** Members of the candidate that go out with the next part. */
  #waiting: JsonObject | undefined;

  constructor(write: (text: string) => void, to: AnswerContext) {
    this.#write = write;
    this.#listed = isListed(to.body);
    this.#tail = `"modelVersion":${JSON.stringify(to.model)},"responseId":${JSON.stringify(to.id)}}`;
  }

  /** The hot path: most of a stream is this. `text` is not empty. */
  text(text: string, thought: boolean): void {
    if (this.#waiting) return this.part({ text, ...(thought && { thought: true }) });
    if (this.#held || this.#thought !== thought) this.#flush();
    const said = this.#letter + text;
    const end = said.length - lastLength(said);
    if (end > 0) this.#text(said.slice(0, end), thought);
    this.#letter = said.slice(end);
    this.#thought = thought;
  }

  part(part: JsonObject): void {
    this.#flush();
    this.#held = { part, more: this.#waiting ?? {} };
    this.#waiting = undefined;
  }

  /** Members of the candidate that belong to the last part, or to the next one if there is none. */
  beside(more: JsonObject): void {
    const held = this.#last();
    if (held) held.more = joined(held.more, more);
    else this.#waiting = this.#waiting ? joined(this.#waiting, more) : more;
  }

  /** Signs the last words of a text or a thought; `alone` is the part if there are none. */
  sign(signature: string, alone: JsonObject): void {
    const held = this.#last();
    if (held && isUnsigned(held.part, alone["thought"] === true))
      held.part = signedPart(held.part, signature);
    else this.part(signedPart(alone, signature));
  }

  /** The end of the answer: `candidate` and `more` go out with the last part. */
  last(candidate: JsonObject, more: JsonObject): void {
    // An answer without any part has one empty text, as Google's own has.
    if (!this.#last()) this.part({ text: "" });
    const held = this.#held!;
    this.#held = undefined;
    this.#put(this.#chunk(held.part, { ...candidate, ...held.more }, more));
    if (this.#listed) this.#write("]");
  }

  /** An event that is an error. A list ends after it, so that what came can be read. */
  fail(body: JsonObject): void {
    this.#flush();
    this.end(body);
  }

  /** One that was written elsewhere. */
  chunk(chunk: JsonObject): void {
    this.#put(JSON.stringify(chunk));
  }

  /** The same, and the last. */
  end(chunk: JsonObject): void {
    this.chunk(chunk);
    if (this.#listed) this.#write("]");
  }

  /** What is held, as a part. */
  #last(): Held | undefined {
    if (this.#letter === "") return this.#held;
    const part: JsonObject = { text: this.#letter, ...(this.#thought && { thought: true }) };
    this.#letter = "";
    return (this.#held = { part, more: {} });
  }

  #flush(): void {
    const held = this.#held;
    const letter = this.#letter;
    this.#held = undefined;
    this.#letter = "";
    if (letter !== "") this.#text(letter, this.#thought);
    if (held) this.#put(this.#chunk(held.part, held.more));
  }

  #text(said: string, thought: boolean): void {
    this.#put(
      `{"candidates":[{"content":{"parts":[{"text":${JSON.stringify(said)}${thought ? ',"thought":true' : ""}}],"role":"model"},"index":0}],${this.#tail}`,
    );
  }

  #chunk(part: JsonObject, candidate: JsonObject, more: JsonObject = {}): string {
    const content = { parts: [part], role: "model" };
    const said = JSON.stringify({ candidates: [{ content, index: 0, ...candidate }], ...more });
    return `${said.slice(0, -1)},${this.#tail}`;
  }

  #put(text: string): void {
    const json = LINE_ENDS.test(text) ? text.replace(EACH_LINE_END, escaped) : text;
    if (!this.#listed) return this.#write(`data: ${json}\n\n`);
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
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const both: Record<string, Opt<Json>> = { ...one };
  for (const name in other) {
    const [before, after] = [both[name], other[name]];
    if (Array.isArray(before) && Array.isArray(after)) both[name] = [...before, ...after];
    else both[name] = isObject(before) && isObject(after) ? joined(before, after) : after;
  }
  return both;
}

/** Units of the last character: no half of one may leave. */
function lastLength(text: string): 1 | 2 {
  const last = text.charCodeAt(text.length - 1);
  return text.length > 1 && last >= 0xdc00 && last <= 0xdfff ? 2 : 1;
}
