// Chunks on their way out: events without a name, or, where a client did not ask for events, one JSON list that grows.
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { isListed } from "../words.ts";

/** Between the elements of a list. */
export const NEXT = ",\r\n";

export class ChunkWriter {
  readonly #write: (text: string) => void;
  readonly #listed: boolean;
  /** What every chunk ends with. */
  readonly #tail: string;
  #begun = false;

  constructor(write: (text: string) => void, to: AnswerContext) {
    this.#write = write;
    this.#listed = isListed(to.body);
    this.#tail = `"modelVersion":${JSON.stringify(to.model)},"responseId":${JSON.stringify(to.id)}}`;
  }

  /** The hot path: most of a stream is this. */
  text(said: string, thought: boolean): void {
    this.#put(
      `{"candidates":[{"content":{"parts":[{"text":${JSON.stringify(said)}${thought ? ',"thought":true' : ""}}],"role":"model"},"index":0}],${this.#tail}`,
    );
  }

  /** `more`: of the candidate. */
  part(part: JsonObject, more: JsonObject = {}): void {
    this.#put(this.#chunk({ content: { parts: [part], role: "model" }, index: 0, ...more }));
  }

  /** What belongs to words that have left. */
  beside(more: JsonObject): void {
    this.#put(this.#chunk({ content: { parts: [], role: "model" }, index: 0, ...more }));
  }

  last(candidate: JsonObject, more: JsonObject): void {
    this.#put(this.#chunk(candidate, more));
    if (this.#listed) this.#write("]");
  }

  /** An event that is an error. A list ends after it, so that what came can be read. */
  fail(body: JsonObject): void {
    this.#put(JSON.stringify(body));
    if (this.#listed) this.#write("]");
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

  #chunk(candidate: JsonObject, more: JsonObject = {}): string {
    const said = JSON.stringify({ candidates: [candidate], ...more });
    return `${said.slice(0, -1)},${this.#tail}`;
  }

  #put(json: string): void {
    if (!this.#listed) return this.#write(`data: ${json}\n\n`);
    this.#write(`${this.#begun ? NEXT : "["}${json}`);
    this.#begun = true;
  }
}
