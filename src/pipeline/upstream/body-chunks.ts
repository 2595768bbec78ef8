// The body of an outgoing request. A small body is one buffer. A large body that was edited
// consists of views into the client's bytes with the edits between them, because copying each large
// body would cause full garbage collections.
import { unpooledConcat } from "../../lib/unpooled-buffer.ts";

/** Size in bytes from which a body is not copied into one buffer. */
const SINGLE_BUFFER_BYTES = 256 * 1024;
/**
 * Chunks smaller than this many bytes are copied together, because a separate write for each of
 * them costs more.
 */
const SMALL_CHUNK_BYTES = 16 * 1024;

export class BodyChunks {
  readonly length: number;
  #chunks: readonly Buffer[];

  constructor(parts: readonly Buffer[]) {
    let length = 0;
    for (const part of parts) length += part.length;
    this.length = length;
    if (parts.length === 1) this.#chunks = parts;
    else
      this.#chunks =
        length < SINGLE_BUFFER_BYTES ? [unpooledConcat(parts)] : mergeSmallChunks(parts);
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  /**
   * Returns the body in one buffer, for a scheme that signs it. That buffer is then also the one
   * that is sent.
   */
  toBuffer(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}

/** Merges small adjacent chunks. */
function mergeSmallChunks(parts: readonly Buffer[]): Buffer[] {
  const list: Buffer[] = [];
  let small: Buffer[] = [];
  const join = () => {
    if (small.length > 0) list.push(unpooledConcat(small));
    small = [];
  };
  for (const part of parts) {
    if (part.length < SMALL_CHUNK_BYTES) {
      small.push(part);
      continue;
    }
    join();
    list.push(part);
  }
  join();
  return list;
}
