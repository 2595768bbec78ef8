// Encrypts a file in chunks with AES-256-GCM, so that a part of it can be read without the rest. The
// nonce of a chunk is its number and whether it is the last one, so chunks cannot be moved,
// repeated, or cut off. A key encrypts one file only.
import { createCipheriv, createDecipheriv } from "node:crypto";

const CHUNK_BYTES = 64 * 1024;
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

/** Encrypts a file as it arrives. */
export async function* sealChunks(
  key: Uint8Array,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void> {
  let rest: Uint8Array[] = [];
  let length = 0;
  let number = 0;
  for await (const bytes of source) {
    rest.push(bytes);
    length += bytes.length;
    // A whole chunk waits until it is known that it is not the last one.
    if (length <= CHUNK_BYTES) continue;
    let all: Buffer = Buffer.concat(rest);
    for (; all.length > CHUNK_BYTES; all = all.subarray(CHUNK_BYTES))
      yield* sealChunk(key, number++, false, all.subarray(0, CHUNK_BYTES));
    rest = [all];
    length = all.length;
  }
  yield* sealChunk(key, number, true, rest.length === 1 ? rest[0]! : Buffer.concat(rest));
}

/**
 * Decrypts chunks. Throws if one was changed, or if the last one is not the last one of the file.
 * @param sealed The encrypted bytes of a span, in any pieces.
 */
export async function* openChunks(
  key: Uint8Array,
  bytes: number,
  { firstChunk }: SealedSpan,
  sealed: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void> {
  const last = chunkCount(bytes) - 1;
  let rest: Buffer = Buffer.alloc(0);
  let number = firstChunk;
  const open = (length: number): Buffer => {
    const chunk = openChunk(key, number, number === last, rest.subarray(0, length));
    rest = rest.subarray(length);
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
  yield cipher.update(chunk);
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
