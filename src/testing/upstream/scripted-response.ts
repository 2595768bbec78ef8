// Response of a fake upstream, as plain data. All fields can be combined, so a failure is one field
// added to a valid response: `{ ...say("Hello").toResponse(asked), truncation: { after: 40, how:
// "reset" } }`.
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";
import type { Chunks } from "./split-chunks.ts";

/**
 * Bytes that belong together: one event, or a complete JSON text, with the usage that these bytes
 * report, if any.
 */
export type ResponsePiece =
  | string
  | Buffer
  | { readonly bytes: string | Buffer; readonly tells: Usage };

/**
 * Response of the fake upstream to one request. A test creates it. The upstream writes it once and
 * keeps nothing of it. All fields can be combined.
 */
export interface ScriptedResponse {
  /** HTTP status. Default: 200. */
  readonly status?: number;
  /**
   * Headers. A list is written as several headers with that name. `undefined` removes a default
   * header.
   */
  readonly headers?: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body?: ResponsePiece | readonly ResponsePiece[];
  /**
   * Usage that the upstream bills for the response, whether or not the client receives the usage.
   */
  readonly billedUsage?: Usage;
  /** How the body is split. Default: one write for each piece. */
  readonly chunks?: Chunks;
  /**
   * How the end of the body is marked. Default: `chunked` for several pieces, else `length`. A
   * number is a content-length, which may be wrong.
   */
  readonly framing?: "chunked" | "length" | "close" | number;
  readonly gzip?: boolean;
  /** Delay before the headers, in milliseconds. */
  readonly delayMs?: number;
  /** Delay between two chunks, in milliseconds. */
  readonly chunkDelayMs?: number;
  /** Interim statuses that are sent before the response, such as 100 or 103. */
  readonly interimStatuses?: readonly number[];
  readonly truncation?: Truncation;
  /**
   * All bytes that are written, including the status line. Status, headers, body, and framing are
   * ignored.
   */
  readonly raw?: ResponsePiece | readonly ResponsePiece[];
}

/** Position and method of a truncation. Without it, the response is written completely. */
export interface Truncation {
  /**
   * Position: before the headers, after the headers, after a number of body bytes, or after a
   * number of pieces.
   */
  readonly after: "nothing" | "headers" | number | { readonly pieces: number };
  /**
   * Method. `reset`: RST. `close`: FIN before the end of the body. `end`: the body is ended
   * properly, but too soon. `stall`: the connection stays open and silent.
   */
  readonly how: "reset" | "close" | "end" | "stall";
}

/** Returns a complete JSON response. Default status: 200. */
export const jsonResponse = (body: Json, status = 200): ScriptedResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

/** Returns a response with events as they are sent, including the blank line. */
export const eventStreamResponse = (events: readonly ResponsePiece[]): ScriptedResponse => ({
  headers: { "content-type": "text/event-stream; charset=utf-8" },
  body: events,
  framing: "chunked",
});

/** Returns an HTML page, such as proxies send instead of a response. */
export const htmlResponse = (
  status = 200,
  text = "<!doctype html><title>Hello</title>",
): ScriptedResponse => ({
  status,
  headers: { "content-type": "text/html" },
  body: text,
});

/** Returns a small body that expands to `size` zero bytes: a gzip bomb. */
export const compressionBomb = (size: number): ScriptedResponse => ({
  headers: { "content-type": "application/json" },
  body: Buffer.alloc(size),
  gzip: true,
});
