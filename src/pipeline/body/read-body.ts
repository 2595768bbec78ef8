// The bytes of a body: what may come, how much of it, and room for it before it is read.
import type { IncomingMessage } from "node:http";
import { fail, createFault } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { BodyForm } from "../../plugin/frontend.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { isMultipart } from "./multipart-headers.ts";

/** A body of unknown length gets its room in pieces of this. */
const RESERVATION_STEP = 64 * 1024;
/** From here on pieces go into one block as they come, and are let go of at once. A smaller body is joined at its end, which costs less. */
const SINGLE_BLOCK_BYTES = 256 * 1024;
/** A block is made when this part of it has come: a client that announces much and sends little takes little. */
const BLOCK_AFTER_SHARE = 8;

export const isBodiless = (method: string): boolean =>
  method === "GET" || method === "DELETE" || method === "HEAD";
export const NO_BYTES = Buffer.alloc(0);

/** What was announced may be taken, and there is room for it. "bytes": whatever is announced. "none": none is read. */
export function prepareToReadBody(x: HostExchange, form: BodyForm | "bytes" | "none"): void {
  const { isDisconnected, req, res } = x["~"];
  if (form !== "bytes" && form !== "none") assertContentType(req, form);
  // A client that left while it was admitted sends no more events.
  if (isDisconnected || req.destroyed) fail("canceled", "The client went away.");
  if (form !== "none") reserveBodyMemory(x);
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

/** Before a byte of it is read: what its head says that it will be. */
function reserveBodyMemory(x: HostExchange): void {
  const { gen, req } = x["~"];
  const announcedBytes = Number(req.headers["content-length"] ?? 0);
  if (announcedBytes > gen.maxBodyBytes) failBoundExceeded("body", gen.maxBodyBytes);
  x["~"].permit.reserveMemory(
    req.headers["content-length"] === undefined ? RESERVATION_STEP : announcedBytes,
  );
}

/** The body's bytes. Too many are refused as soon as that is known. */
export function readBody(x: HostExchange): Promise<Buffer> {
  const state = x["~"];
  const { gen, req } = state;
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
      state.bytesIn = size += chunk.length;
      try {
        if (size > gen.maxBodyBytes) failBoundExceeded("body", gen.maxBodyBytes);
        while (size > state.permit.reservedBytes) state.permit.reserveMemory(RESERVATION_STEP);
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
      // Fires after a whole body too; making an error is dear.
      if (req.complete && req.readableEnded) return;
      chunks.length = 0;
      reject(createFault("canceled", "The request ended before its body did."));
    };
    req.on("end", () =>
      resolve(block ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))),
    );
    req.on("error", onAborted);
    req.on("close", onAborted);
  });
}

/** Its memory is free at once. V8 else counts all that came since its last full collection, and makes one for every 64 MB. */
function freeChunk(chunk: Buffer): void {
  if (chunk.byteLength === chunk.buffer.byteLength) (chunk.buffer as ArrayBuffer).transfer(0);
}
