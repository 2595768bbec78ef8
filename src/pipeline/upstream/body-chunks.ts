// A body that leaves. A small one is one buffer; a large one that was edited stays views into what the client sent with the
// edits between them, for a copy of each large body is what full collections are made for.
import { unpooledConcat } from "../../lib/unpooled-buffer.ts";

/** A body of this size is not copied to be in one buffer. */
const SINGLE_BUFFER_BYTES = 256 * 1024;
/** What lies between large pieces is copied: a write for each of them costs more. */
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

  /** In one buffer, for a scheme that signs it; what is sent then is that buffer. */
  toBuffer(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}

/** Small neighbours become one piece. */
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
