// What a gateway and a plugin outside it say to each other: one JSON text a line. docs/plugins/isolation.md is this protocol in
// words; what stands here is its types, and a reader that takes the same time for a byte however the bytes come.
import type { Writable } from "node:stream";
import type { Fault } from "../model/error.ts";

/** Asks for something, and is answered once. `parent`: the question that it belongs to. */
export interface CallFrame {
  readonly call: number;
  readonly method: string;
  readonly params?: unknown;
  readonly parent?: number;
}
/** `fault`: a word, said with `fail()`. `error`: it failed. */
export type ReplyFrame =
  | { readonly reply: number; readonly value?: unknown }
  | { readonly reply: number; readonly fault: Fault }
  | { readonly reply: number; readonly error: string };
/** Is not answered. */
export interface NotifyFrame {
  readonly notify: string;
  readonly params?: unknown;
}
export type Frame = CallFrame | ReplyFrame | NotifyFrame;

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);
const isNumber = (it: unknown): boolean => Number.isSafeInteger(it) && (it as number) > 0;

/** Undefined: it is none. */
export function parseFrame(text: string): Frame | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isMapping(parsed) && isFrame(parsed) ? (parsed as unknown as Frame) : undefined;
}

function isFrame({
  call,
  reply,
  notify,
  method,
  parent,
}: Readonly<Record<string, unknown>>): boolean {
  if (notify !== undefined)
    return typeof notify === "string" && call === undefined && reply === undefined;
  if (reply !== undefined) return isNumber(reply) && call === undefined;
  return isNumber(call) && typeof method === "string" && (parent === undefined || isNumber(parent));
}

/** As in JSON.stringify, but for what it cannot say: large whole numbers. */
const bigintReplacer = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? { type: "BigInt", data: String(value) } : value;

/** Most frames have nothing but JSON in them, and a look at each value would cost more than all else. */
export function serializeFrame(frame: Frame): string {
  try {
    return `${JSON.stringify(frame)}\n`;
  } catch {
    return `${JSON.stringify(frame, bigintReplacer)}\n`;
  }
}

/** Bytes and large numbers, where they were written by `written`. */
export function frameReviver(_key: string, value: unknown): unknown {
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
  #buffered = "";
  #flushScheduled = false;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  write(line: string): void {
    this.#buffered += line;
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    setImmediate(() => this.flush());
  }

  /** With the next line, or with the next flush: nothing waits for it. */
  writeLazily(line: string): void {
    this.#buffered += line;
  }

  flush(): void {
    this.#flushScheduled = false;
    const text = this.#buffered;
    this.#buffered = "";
    if (text !== "" && !this.#stream.destroyed) this.#stream.write(text);
  }

  /** Bytes that the other end has not read, and what is to follow them. */
  get unreadBytes(): number {
    return this.#stream.writableLength + this.#buffered.length;
  }
}

const NEWLINE = 10;

/** Lines out of bytes. A line is put together once, when its end is there. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** `most`: bytes of one line. False: a line is longer, and nothing more is to be read. `hear` says false where it wants no more. */
  push(
    chunk: Buffer,
    maxBytes: () => number,
    onLine: (line: string, bytes: number) => boolean,
  ): boolean {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      const bytes = this.#bytes + at - from;
      if (bytes > maxBytes()) return false;
      const line =
        this.#bytes === 0
          ? chunk.toString("utf8", from, at)
          : this.#join(chunk.subarray(from, at), bytes);
      from = at + 1;
      if (!onLine(line, bytes)) return true;
    }
    if (from < chunk.length) {
      this.#parts.push(from === 0 ? chunk : chunk.subarray(from));
      this.#bytes += chunk.length - from;
    }
    return this.#bytes <= maxBytes();
  }

  #join(last: Buffer, bytes: number): string {
    const line = Buffer.concat([...this.#parts, last], bytes);
    this.#parts = [];
    this.#bytes = 0;
    return line.toString("utf8");
  }
}
