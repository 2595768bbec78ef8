// Frames between the gateway and an isolated plugin: one JSON text per line.
// `docs/plugins/isolation.md` documents the protocol. This file contains its types and a reader
// whose time per byte does not depend on how the bytes are split.
import type { Writable } from "node:stream";
import type { Fault } from "../model/error.ts";

/** A call that receives exactly one reply. `parent`: the number of the call to which it belongs. */
export interface CallFrame {
  readonly call: number;
  readonly method: string;
  readonly params?: unknown;
  readonly parent?: number;
}
/** A reply. `fault`: thrown with `fail()`. `error`: any other failure. */
export type ReplyFrame =
  | { readonly reply: number; readonly value?: unknown }
  | { readonly reply: number; readonly fault: Fault }
  | { readonly reply: number; readonly error: string };
/** A message without a reply. */
export interface NotifyFrame {
  readonly notify: string;
  readonly params?: unknown;
}
export type Frame = CallFrame | ReplyFrame | NotifyFrame;

const isMapping = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null && !Array.isArray(it);
const isNumber = (it: unknown): boolean => Number.isSafeInteger(it) && (it as number) > 0;

/** Parses a frame. Undefined if the text is not a frame. */
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

/** Encodes big integers, which JSON cannot represent. */
const bigintReplacer = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? { type: "BigInt", data: String(value) } : value;

/**
 * Serializes a frame. The replacer is used only if plain JSON fails. It would cost more than all
 * other steps, and most frames do not need it.
 */
export function serializeFrame(frame: Frame): string {
  try {
    return `${JSON.stringify(frame)}\n`;
  } catch {
    return `${JSON.stringify(frame, bigintReplacer)}\n`;
  }
}

/** Restores bytes and big integers. */
export function frameReviver(_key: string, value: unknown): unknown {
  if (!isMapping(value)) return value;
  const { type, data } = value;
  if (type === "BigInt" && typeof data === "string" && /^-?\d{1,40}$/.test(data))
    return BigInt(data);
  if (type === "Buffer" && Array.isArray(data)) return Buffer.from(data as number[]);
  return value;
}

/** Writes lines to a stream. The lines of one event loop turn are sent in one write. */
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

  /**
   * Adds a line that is sent with the next line or flush. Use it if no reply depends on the line.
   */
  writeLazily(line: string): void {
    this.#buffered += line;
  }

  flush(): void {
    this.#flushScheduled = false;
    const text = this.#buffered;
    this.#buffered = "";
    if (text !== "" && !this.#stream.destroyed) this.#stream.write(text);
  }

  /** Bytes that the other side has not read yet, plus the length of the buffered lines. */
  get unreadBytes(): number {
    return this.#stream.writableLength + this.#buffered.length;
  }
}

const NEWLINE = 10;

/** Reads lines from chunks. A line is assembled once, when its end has arrived. */
export class LineReader {
  #parts: Buffer[] = [];
  #bytes = 0;

  /**
   * Reads a chunk. `maxBytes`: maximum length of a line. Returns false if a line is too long.
   * Nothing more may be read after that. If `onLine` returns false, reading stops.
   */
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
