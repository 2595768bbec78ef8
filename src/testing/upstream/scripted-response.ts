// Response of a fake upstream, as plain data. All fields can be combined, so a failure is one field
// added to a valid response: `{ ...say("Hello").toResponse(request), truncation: { after: 40, how:
// "reset" } }`.
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";
import { type Chunks, splitChunks } from "./script-pieces.ts";
import type { Socket } from "node:net";
import { STATUS_CODES } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { wallClock } from "../../lib/time/wall-clock.ts";

/**
 * Bytes that are sent together: one event, or a complete JSON text, with the usage that they
 * report, if any.
 */
export type ResponsePiece =
  | string
  | Buffer
  | { readonly bytes: string | Buffer; readonly tells: Usage };

/**
 * Response of the fake upstream to one request. A test creates it. The upstream writes the response
 * once and does not keep it. All fields can be combined.
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
   * All bytes to write, including the status line. Status, headers, body, and framing are then
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
   * properly, but before its actual end. `stall`: the connection stays open and silent.
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

/** Receives the progress of a response while it is sent. */
interface SendObserver {
  /** Called with the number of body bytes that were passed to the socket. */
  onBytesSent(bytes: number): void;
  onUsageReported(usage: Usage): void;
}

/**
 * Result of sending. `complete`: the connection can be reused. `closed`: the client closed the
 * connection.
 */
type SendOutcome = "complete" | "truncated" | "stalled" | "closed";

/** Writes one response, including its scripted failures. */
export async function sendResponse(
  socket: Socket,
  answer: ScriptedResponse,
  method: string,
  note: SendObserver,
): Promise<SendOutcome> {
  if (answer.delayMs) await sleep(answer.delayMs);
  const fault = answer.truncation;
  if (fault?.after === "nothing") return truncateConnection(socket, fault.how, () => {});
  const raw = answer.raw !== undefined;
  const pieces = [answer.raw ?? answer.body ?? []].flat() as ResponsePiece[];
  const body = answer.gzip
    ? [gzipSync(Buffer.concat(pieces.map(pieceBytes)))]
    : pieces.map(pieceBytes);
  const framing = raw || method === "HEAD" ? "none" : chooseFraming(answer, body);
  const write = createSocketWriter(socket, framing === "chunked");
  if (!raw) {
    const heads = (answer.interimStatuses ?? []).map((status) => `${statusLine(status)}\r\n`);
    await write(Buffer.from(heads.join("") + responseHead(answer, framing, body)), false);
  }
  if (fault?.after === "headers") return truncateConnection(socket, fault.how, write.end);

  const end = fault === undefined ? Infinity : truncationOffset(fault.after, body);
  const marks = usageReports(pieces, answer.gzip === true);
  let written = 0;
  for (const chunk of method === "HEAD" ? [] : splitChunks(body, answer.chunks ?? "pieces")) {
    if (socket.destroyed) return "closed";
    if (written >= end) break;
    if (written > 0 && answer.chunkDelayMs) await sleep(answer.chunkDelayMs);
    const part = chunk.subarray(0, end - written);
    await write(part, true);
    written += part.length;
    note.onBytesSent(written);
    while (marks.length > 0 && marks[0]!.at <= written) note.onUsageReported(marks.shift()!.usage);
  }
  if (socket.destroyed) return "closed";
  if (fault) return truncateConnection(socket, fault.how, write.end);
  await write.end();
  if (raw || framing === "close") socket.end();
  return "complete";
}

const pieceBytes = (piece: ResponsePiece): Buffer => {
  const bytes = typeof piece === "object" && "tells" in piece ? piece.bytes : piece;
  return typeof bytes === "string" ? Buffer.from(bytes) : bytes;
};

/** Returns the usage that has been reported after each number of bytes of the body. */
function usageReports(
  pieces: readonly ResponsePiece[],
  atEnd: boolean,
): { at: number; usage: Usage }[] {
  const marks: { at: number; usage: Usage }[] = [];
  let at = 0;
  for (const piece of pieces) {
    at += pieceBytes(piece).length;
    if (typeof piece === "object" && "tells" in piece)
      marks.push({ at: atEnd ? 1 : at, usage: piece.tells });
  }
  return marks;
}

type Framing = "chunked" | "length" | "close" | "none" | number;

function chooseFraming(answer: ScriptedResponse, body: readonly Buffer[]): Framing {
  if (answer.framing !== undefined) return answer.framing;
  const status = answer.status ?? 200;
  if (status === 204 || status === 304) return "none";
  return body.length > 1 ? "chunked" : "length";
}

const statusLine = (status: number) => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Odd"}\r\n`;

function responseHead(answer: ScriptedResponse, framing: Framing, body: readonly Buffer[]): string {
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  const headers: Record<string, string | readonly string[] | undefined> = {
    date: new Date(wallClock()).toUTCString(),
    ...(answer.gzip && { "content-encoding": "gzip" }),
    ...(framing === "chunked" && { "transfer-encoding": "chunked" }),
    ...(framing === "length" && { "content-length": `${length}` }),
    ...(framing === "close" && { connection: "close" }),
    ...(typeof framing === "number" && { "content-length": `${framing}` }),
    ...answer.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  return `${statusLine(answer.status ?? 200)}${lines.join("")}\r\n`;
}

function truncationOffset(
  after: number | { readonly pieces: number },
  body: readonly Buffer[],
): number {
  if (typeof after === "number") return after;
  return body.slice(0, after.pieces).reduce((sum, piece) => sum + piece.length, 0);
}

/**
 * Creates a writer that waits while the socket buffer is full, so that a slow reader causes
 * backpressure as with a real provider.
 */
function createSocketWriter(socket: Socket, chunked: boolean) {
  const flush = (bytes: Buffer) =>
    new Promise<void>((resolve) => {
      if (socket.destroyed || !socket.writable || socket.write(bytes)) return resolve();
      const done = () => {
        socket.off("drain", done);
        socket.off("close", done);
        resolve();
      };
      socket.on("drain", done);
      socket.on("close", done);
    });
  const write = (bytes: Buffer, framed: boolean) =>
    flush(
      chunked && framed
        ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF])
        : bytes,
    );
  return Object.assign(write, { end: () => (chunked ? flush(LAST_CHUNK) : undefined) });
}
const CRLF = Buffer.from("\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

async function truncateConnection(
  socket: Socket,
  how: "reset" | "close" | "end" | "stall",
  end: () => unknown,
): Promise<SendOutcome> {
  switch (how) {
    case "end":
      await end();
      return "complete";
    case "reset":
      // This gives earlier bytes time to arrive, because a reset discards bytes that are still in
      // the kernel's buffer.
      await sleep(2);
      socket.resetAndDestroy();
      return "truncated";
    case "close":
      socket.end();
      return "truncated";
    case "stall":
      return "stalled";
  }
}
