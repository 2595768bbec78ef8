// Reads the bytes of a body: checks the content type and the size, and reserves memory before
// reading.
import type { IncomingMessage } from "node:http";
import { fail, createFault } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { BodyForm, FormPart } from "../../plugin/frontend.ts";
import { readFormParts } from "./form-stream.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { isMultipart, boundaryOf } from "./multipart-parser.ts";
import { isAscii, isUtf8 } from "node:buffer";
import { markAsStreamed } from "../../lib/net/streamed-bodies.ts";
import { scan, Scanner, type Scan, type Span } from "../../lib/json/json-scanner.ts";
import type { Body } from "../../model/values.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../../lib/yield.ts";
import { parseMultipartBody, type MultipartLayout } from "./multipart-body.ts";

/** Step in bytes by which memory is reserved for a body of unknown length. */
const RESERVATION_STEP = 64 * 1024;
/**
 * Body size in bytes from which chunks are copied into one block as they arrive and are freed
 * immediately. A smaller body is joined at its end, which costs less.
 */
const SINGLE_BLOCK_BYTES = 256 * 1024;
/**
 * The block is allocated when one part in this many has arrived, so that a client that announces a
 * large body and sends little occupies little memory.
 */
const BLOCK_AFTER_SHARE = 8;

export const isBodiless = (method: string): boolean =>
  method === "GET" || method === "DELETE" || method === "HEAD";
export const NO_BYTES = Buffer.alloc(0);

/**
 * Checks the announced body and reserves memory for it. "bytes": any content type is accepted.
 * "parts" and "stream": the body is not held in memory. "none": no body is read.
 */
export function prepareToReadBody(
  x: HostExchange,
  form: BodyForm | "bytes" | "parts" | "stream" | "none",
): void {
  const { isDisconnected, req, res } = x.state.connection;
  const isStream = form === "parts" || form === "stream";
  if (isStream) assertContentType(req, form === "parts" ? "multipart" : "json");
  else if (form !== "bytes" && form !== "none") assertContentType(req, form);
  // If a client disconnected while its request was admitted, no more events follow.
  if (isDisconnected || req.destroyed) fail("canceled", "The client disconnected.");
  if (isStream) {
    markAsStreamed(req);
    x.state.admission.permit.reserveMemory(RESERVATION_STEP);
  } else if (form !== "none") reserveBodyMemory(x);
  if (req.headers.expect !== undefined) res.writeContinue();
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;
const CONTENT_TYPES = {
  json: "application/json",
  multipart: "multipart/form-data",
  either: "application/json or multipart/form-data",
} as const;

function assertContentType(req: IncomingMessage, form: BodyForm): void {
  const type = req.headers["content-type"] ?? "";
  if (form !== "multipart" && JSON_TYPE.test(type)) return;
  if (form !== "json" && isMultipart(type)) return;
  fail(
    "invalid",
    `Send the body as Content-Type: ${CONTENT_TYPES[form]}${type ? `, not ${type}` : ""}.`,
    {
      code: "unsupported_media_type",
    },
  );
}

/** Reserves memory for the announced length, before a byte of the body is read. */
function reserveBodyMemory(x: HostExchange): void {
  const { gen, connection, admission } = x.state;
  const { req } = connection;
  const announcedBytes = Number(req.headers["content-length"] ?? 0);
  if (announcedBytes > gen.maxBodyBytes) failBoundExceeded("body", gen.maxBodyBytes);
  admission.permit.reserveMemory(
    req.headers["content-length"] === undefined ? RESERVATION_STEP : announcedBytes,
  );
}

/** Reads the body. Rejects as soon as the body exceeds the bound. */
export function readBody(x: HostExchange): Promise<Buffer> {
  const { gen, connection, admission } = x.state;
  const { req } = connection;
  const { permit } = admission;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const announcedBytes = Number(req.headers["content-length"] ?? 0);
    let block: Buffer | undefined;
    let size = 0;
    const copyToBlock = (chunk: Buffer, at: number): number => {
      const end = at + chunk.copy(block!, at);
      freeChunk(chunk);
      return end;
    };
    req.on("data", (chunk: Buffer) => {
      connection.bytesIn = size += chunk.length;
      try {
        if (size > gen.maxBodyBytes) failBoundExceeded("body", gen.maxBodyBytes);
        while (size > permit.reservedBytes) permit.reserveMemory(RESERVATION_STEP);
      } catch (error) {
        req.removeAllListeners("data");
        req.pause();
        chunks.length = 0;
        return reject(error as Error);
      }
      if (block) return void copyToBlock(chunk, size - chunk.length);
      chunks.push(chunk);
      if (announcedBytes < SINGLE_BLOCK_BYTES || size * BLOCK_AFTER_SHARE < announcedBytes) return;
      block = Buffer.allocUnsafeSlow(announcedBytes);
      let end = 0;
      for (const came of chunks.splice(0)) end = copyToBlock(came, end);
    });
    const onAborted = () => {
      // This event also fires after a complete body, and creating an error is expensive.
      if (req.complete && req.readableEnded) return;
      chunks.length = 0;
      reject(createFault("canceled", "The request ended before its body was complete."));
    };
    req.on("end", () =>
      resolve(block ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))),
    );
    req.on("error", onAborted);
    req.on("close", onAborted);
  });
}

/** Reads a form part by part. Fails as `canceled` if the client disconnects before its end. */
export function readParts(x: HostExchange): AsyncIterable<FormPart> {
  return readFormParts(
    readChunks(x),
    requireBoundary(x.state.connection.req.headers["content-type"] ?? ""),
  );
}

const requireBoundary = (type: string): string =>
  boundaryOf(type) ??
  rejectBody("The Content-Type of a form must have exactly one valid boundary.", "invalid_form");

/** Yields the bytes of the body. Fails as `canceled` if the client disconnects before its end. */
export async function* readChunks(x: HostExchange): AsyncGenerator<Buffer, void> {
  const { connection } = x.state;
  try {
    // The connection is still needed for the response if the rest of the body is not read.
    const chunks: AsyncIterable<Buffer> = connection.req.iterator({ destroyOnReturn: false });
    for await (const chunk of chunks) {
      connection.bytesIn += chunk.length;
      yield chunk;
    }
  } catch (cause) {
    fail("canceled", "The request ended before its body was complete.", { cause });
  }
}

/**
 * Frees a chunk's memory immediately. Otherwise V8 counts everything that arrived since its last
 * full collection, and runs a full collection for every 64 MB.
 */
function freeChunk(chunk: Buffer): void {
  if (chunk.byteLength === chunk.buffer.byteLength) (chunk.buffer as ArrayBuffer).transfer(0);
}

// Parses request bodies. A body with more than one possible meaning is rejected.

/** Bytes scanned before other work gets a turn. */
const SCAN_STEP_BYTES = 4 * 1024 * 1024;

interface ParsedBody {
  body: Body;
  /** Positions of the members in the JSON text. */
  spans: ReadonlyMap<string, Span> | null;
  /** Positions of the fields in the form. */
  multipart: MultipartLayout | undefined;
  /** Whether a case-insensitive parser could confuse a name with another one. */
  hasCaseVariants: boolean;
}

/** Body of a request whose method allows none. */
export const NO_BODY: ParsedBody = {
  body: {},
  spans: null,
  multipart: undefined,
  hasCaseVariants: false,
};

const rejectBody = (message: string, code: string): never => fail("invalid", message, { code });

/**
 * Parses a body. A large body is parsed in several event loop turns, so that other requests do not
 * wait for the whole body. `type`: the content type that the client sent.
 */
export function parseBody(
  raw: Buffer,
  type: string,
  maxValues: number,
): ParsedBody | Promise<ParsedBody> {
  if (isMultipart(type)) return parseMultipartForm(raw, type);
  if (raw.length === 0) rejectBody("The body is empty.", "invalid_json");
  const ascii = isAscii(raw);
  if (!ascii && !isUtf8(raw)) rejectBody("The body is not valid UTF-8.", "invalid_utf8");
  const decodeText = () => raw.toString(ascii ? "latin1" : "utf8");
  if (raw.length >= LARGE_BODY_BYTES) return parseInSteps(raw, maxValues, decodeText);
  const seen = assertWithinBounds(scan(raw, maxValues), maxValues);
  return parseJsonBody(decodeText(), seen);
}

async function parseInSteps(
  raw: Buffer,
  maxValues: number,
  decodeText: () => string,
): Promise<ParsedBody> {
  const scanner = new Scanner(raw, maxValues);
  let scanned: Scan | undefined;
  while (!(scanned = scanner.scanTo(SCAN_STEP_BYTES))) await yieldToEventLoop();
  assertWithinBounds(scanned, maxValues);
  await yieldToEventLoop();
  const text = decodeText();
  await yieldToEventLoop();
  const parsedBody = parseJsonBody(text, scanned);
  await yieldToEventLoop();
  return parsedBody;
}

/** Throws if the scan found that the text exceeds a bound. Such a text is not parsed. */
function assertWithinBounds(seen: Scan, values: number): Scan {
  const bound = seen.flaw?.bound;
  if (bound) failBoundExceeded(bound, bound === "jsonValues" ? values : undefined);
  return seen;
}

function parseJsonBody(text: string, seen: Scan): ParsedBody {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const [, at] = /position (\d+)/.exec((error as Error).message) ?? [];
    rejectBody(`The body is not JSON${at ? `: see character ${at}` : ""}.`, "invalid_json");
  }
  if (seen.flaw) return rejectBody(seen.flaw.message, seen.flaw.code);
  return {
    body: body as Body,
    spans: seen.spans,
    multipart: undefined,
    hasCaseVariants: seen.hasCaseVariants,
  };
}

function parseMultipartForm(raw: Buffer, type: string): ParsedBody {
  const boundary = requireBoundary(type);
  const seen = parseMultipartBody(raw, boundary);
  if (!seen.flaw)
    return {
      body: seen.body,
      spans: null,
      multipart: seen.layout,
      hasCaseVariants: seen.hasCaseVariants,
    };
  if (seen.flaw.bound) failBoundExceeded(seen.flaw.bound);
  return rejectBody(seen.flaw.message, seen.flaw.code);
}
