// What a gateway and a plugin outside it say to each other: one JSON text a line. docs/plugins/isolation.md is this protocol in
// words; what stands here is its types, and a reader that takes the same time for a byte however the bytes come.
import type { Writable } from "node:stream";
import type { Fault } from "../model/error.ts";

/** Asks for something, and is answered once. `of`: the question that it belongs to. */
export interface Question {
  readonly ask: number;
  readonly name: string;
  readonly with?: unknown;
  readonly of?: number;
}
/** `fault`: a word, said with `fail()`. `error`: it failed. */
export type Answer =
  | { readonly answer: number; readonly value?: unknown }
  | { readonly answer: number; readonly fault: Fault }
  | { readonly answer: number; readonly error: string };
/** Is not answered. */
export interface Telling {
  readonly tell: string;
  readonly with?: unknown;
}
export type LinkFrame = Question | Answer | Telling;

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);
const isNumber = (it: unknown): boolean => Number.isSafeInteger(it) && (it as number) > 0;

/** Undefined: it is none. */
export function frameIn(text: string): LinkFrame | undefined {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isMapping(said) && isFrame(said) ? (said as unknown as LinkFrame) : undefined;
}

function isFrame({ ask, answer, tell, name, of }: Readonly<Record<string, unknown>>): boolean {
  if (tell !== undefined)
    return typeof tell === "string" && ask === undefined && answer === undefined;
  if (answer !== undefined) return isNumber(answer) && ask === undefined;
  return isNumber(ask) && typeof name === "string" && (of === undefined || isNumber(of));
}

/** As in JSON.stringify, but for what it cannot say: large whole numbers. */
const large = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? { type: "BigInt", data: String(value) } : value;

/** Most frames have nothing but JSON in them, and a look at each value would cost more than all else. */
export function written(frame: LinkFrame): string {
  try {
    return `${JSON.stringify(frame)}\n`;
  } catch {
    return `${JSON.stringify(frame, large)}\n`;
  }
}

/** Bytes and large numbers, where they were written by `written`. */
export function revived(_key: string, value: unknown): unknown {
  if (!isMapping(value)) return value;
  const { type, data } = value;
  if (type === "BigInt" && typeof data === "string" && /^-?\d{1,40}$/.test(data))
    return BigInt(data);
  if (type === "Buffer" && Array.isArray(data)) return Buffer.from(data as number[]);
  return value;
}

/** Lines into bytes: those of one turn leave in one write. */
export class LineWriter {
  readonly #stream: Writable;
  #waiting = "";
  #due = false;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  write(line: string): void {
    this.#waiting += line;
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.flush());
  }

  /** With the next line, or with the next flush: nothing waits for it. */
  along(line: string): void {
    this.#waiting += line;
  }

  flush(): void {
    this.#due = false;
    const text = this.#waiting;
    this.#waiting = "";
    if (text !== "" && !this.#stream.destroyed) this.#stream.write(text);
  }

  /** Bytes that the other end has not read, and what is to follow them. */
  get unread(): number {
    return this.#stream.writableLength + this.#waiting.length;
  }
}

const NEWLINE = 10;

/** Lines out of bytes. A line is put together once, when its end is there. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** `most`: bytes of one line. False: a line is longer, and nothing more is to be read. `hear` says false where it wants no more. */
  push(chunk: Buffer, most: () => number, hear: (line: string, bytes: number) => boolean): boolean {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      const bytes = this.#bytes + at - from;
      if (bytes > most()) return false;
      const line =
        this.#bytes === 0
          ? chunk.toString("utf8", from, at)
          : this.#joined(chunk.subarray(from, at), bytes);
      from = at + 1;
      if (!hear(line, bytes)) return true;
    }
    if (from < chunk.length) {
      this.#parts.push(from === 0 ? chunk : chunk.subarray(from));
      this.#bytes += chunk.length - from;
    }
    return this.#bytes <= most();
  }

  #joined(last: Buffer, bytes: number): string {
    const line = Buffer.concat([...this.#parts, last], bytes);
    this.#parts = [];
    this.#bytes = 0;
    return line.toString("utf8");
  }
}
