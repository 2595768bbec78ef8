// Encrypts a file in chunks with AES-256-GCM, so that a part of it can be read without the rest. The
// nonce of a chunk is its number and whether it is the last one, so chunks cannot be moved,
// repeated, or cut off. A key encrypts one file only.
import { createCipheriv, createDecipheriv } from "node:crypto";
import { releasePiece } from "./release-pieces.ts";

const CHUNK_BYTES = 64 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);
const TAG_BYTES = 16;
/** Size of an encrypted chunk. The last one may be smaller. */
export const SEALED_BYTES = CHUNK_BYTES + TAG_BYTES;

/** A span of the encrypted file that contains whole chunks. */
export interface SealedSpan {
  readonly firstChunk: number;
  /** Offsets in the encrypted file. */
  readonly from: number;
  readonly to: number;
  /** Number of bytes to skip in the first chunk. */
  readonly skip: number;
}

/** Number of chunks of a file. An empty file has one empty chunk. */
const chunkCount = (bytes: number): number => Math.max(1, Math.ceil(bytes / CHUNK_BYTES));

/** Returns the size of the encrypted file. */
export const sealedSize = (bytes: number): number => bytes + chunkCount(bytes) * TAG_BYTES;

/** Returns the chunks that contain the bytes from `from` up to `to` of a file. */
export function sealedSpan(bytes: number, from: number, to: number): SealedSpan {
  const firstChunk = Math.min(Math.floor(from / CHUNK_BYTES), chunkCount(bytes) - 1);
  return {
    firstChunk,
    from: firstChunk * SEALED_BYTES,
    to: Math.min(Math.max(1, Math.ceil(to / CHUNK_BYTES)) * SEALED_BYTES, sealedSize(bytes)),
    skip: from - firstChunk * CHUNK_BYTES,
  };
}

/**
 * Encrypts a file as it arrives. The caller must not use a piece after it requested the next one,
 * because its memory is then freed.
 */
export async function* sealChunks(
  key: Uint8Array,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void> {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let length = 0;
  let number = 0;
  for await (const bytes of source)
    for (let from = 0; from < bytes.length;) {
      // A full chunk waits until it is known that it is not the last one.
      if (length === CHUNK_BYTES) {
        yield* sealChunk(key, number++, false, chunk);
        length = 0;
      }
      const some = bytes.subarray(from, from + CHUNK_BYTES - length);
      chunk.set(some, length);
      length += some.length;
      from += some.length;
    }
  yield* sealChunk(key, number, true, chunk.subarray(0, length));
}

/**
 * Decrypts chunks. Throws if one was changed, or if the last one is not the last one of the file.
 * @param sealed The encrypted bytes of a span, in any pieces, whose memory is freed.
 */
export async function* openChunks(
  key: Uint8Array,
  bytes: number,
  { firstChunk }: SealedSpan,
  sealed: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void> {
  const last = chunkCount(bytes) - 1;
  let rest = NOTHING;
  let number = firstChunk;
  const open = (length: number): Buffer => {
    const all = rest;
    const chunk = openChunk(key, number, number === last, all.subarray(0, length));
    rest = length === all.length ? NOTHING : all.subarray(length);
    if (rest === NOTHING) releasePiece(all);
    number++;
    return chunk;
  };
  for await (const piece of sealed) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    while (rest.length >= SEALED_BYTES) yield open(SEALED_BYTES);
  }
  if (rest.length > 0) yield open(rest.length);
}

const nonceOf = (number: number, isLast: boolean): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(number, 0, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
};

/** Yields the pieces of an encrypted chunk. Joining them would need a second buffer per chunk. */
function* sealChunk(
  key: Uint8Array,
  number: number,
  isLast: boolean,
  chunk: Uint8Array,
): Generator<Buffer, void> {
  const cipher = createCipheriv("aes-256-gcm", key, nonceOf(number, isLast));
  const sealed = cipher.update(chunk);
  yield sealed;
  releasePiece(sealed);
  cipher.final();
  yield cipher.getAuthTag();
}

function openChunk(key: Uint8Array, number: number, isLast: boolean, sealed: Buffer): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, nonceOf(number, isLast), {
    authTagLength: TAG_BYTES,
  });
  const end = Math.max(0, sealed.length - TAG_BYTES);
  decipher.setAuthTag(sealed.subarray(end));
  const chunk = decipher.update(sealed.subarray(0, end));
  // Throws if the chunk was changed. With GCM, it returns no more bytes.
  decipher.final();
  return chunk;
}
