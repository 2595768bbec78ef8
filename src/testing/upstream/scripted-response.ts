// What a fake upstream answers, as plain data: every field can be set beside any other, so a fault is one word added to
// a good answer: `{ ...say("Hello").toResponse(asked), truncation: { after: 40, how: "reset" } }`.
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";
import type { Chunks } from "./split-chunks.ts";

/** Bytes that belong together: one event, or all of a JSON text. `tells`: these are the ones that say the usage. */
export type ResponsePiece =
  | string
  | Buffer
  | { readonly bytes: string | Buffer; readonly tells: Usage };

/**
 * What the fake upstream answers to one request. A test makes it; the upstream writes it once and keeps nothing of it.
 * Every field may stand beside any other.
 */
export interface ScriptedResponse {
  /** 200 unless told. */
  readonly status?: number;
  /** A list is written as several headers of that name. `undefined` takes one away that would be there. */
  readonly headers?: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body?: ResponsePiece | readonly ResponsePiece[];
  /** What is billed for it, whether or not the client ever hears of it. */
  readonly billedUsage?: Usage;
  /** One write a piece unless told. */
  readonly chunks?: Chunks;
  /** How the body's end is told. chunked for several pieces, else length; a number is a content-length, true or not. */
  readonly framing?: "chunked" | "length" | "close" | number;
  readonly gzip?: boolean;
  /** Before the head. */
  readonly delayMs?: number;
  /** Between two chunks. */
  readonly chunkDelayMs?: number;
  /** Heads that go before the real one: 100, 103. */
  readonly interimStatuses?: readonly number[];
  readonly truncation?: Truncation;
  /** Everything that is written, status line included; status, headers, body and framing are ignored. */
  readonly raw?: ResponsePiece | readonly ResponsePiece[];
}

/** Where and how an answer breaks off. Without one it is written to its end. */
export interface Truncation {
  /** Where it breaks off: before the head, right after it, after so many bytes of the body, after so many pieces. */
  readonly after: "nothing" | "headers" | number | { readonly pieces: number };
  /**
   * reset: RST. close: FIN with the body's end still owed. end: the body is ended properly, too soon.
   * stall: the connection stays open and silent.
   */
  readonly how: "reset" | "close" | "end" | "stall";
}

/** A whole answer in JSON, 200 unless told. Pure. */
export const jsonResponse = (body: Json, status = 200): ScriptedResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

/** Events as they stand on the wire, blank line included. */
export const eventStreamResponse = (events: readonly ResponsePiece[]): ScriptedResponse => ({
  headers: { "content-type": "text/event-stream; charset=utf-8" },
  body: events,
  framing: "chunked",
});

/** A page, as proxies send instead of an answer. */
export const htmlResponse = (
  status = 200,
  text = "<!doctype html><title>Hello</title>",
): ScriptedResponse => ({
  status,
  headers: { "content-type": "text/html" },
  body: text,
});

/** A small body that grows: so many zero bytes behind gzip. */
export const compressionBomb = (size: number): ScriptedResponse => ({
  headers: { "content-type": "application/json" },
  body: Buffer.alloc(size),
  gzip: true,
});
