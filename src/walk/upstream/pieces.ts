// A body that leaves. A small one is one buffer; a large one that was edited stays views into what the client sent with the
// edits between them, for a copy of each large body is what full collections are made for.
import { lastingPiece } from "../../lib/lasting.ts";

/** A body of this size is not copied to be in one buffer. */
const LARGE = 256 * 1024;
/** What lies between large pieces is copied: a write for each of them costs more. */
const SMALL = 16 * 1024;

export class Pieces {
  readonly length: number;
  #list: readonly Buffer[];

  constructor(parts: readonly Buffer[]) {
    let length = 0;
    for (const part of parts) length += part.length;
    this.length = length;
    if (parts.length === 1) this.#list = parts;
    else this.#list = length < LARGE ? [lastingPiece(parts)] : few(parts);
  }

  get list(): readonly Buffer[] {
    return this.#list;
  }

  /** In one buffer, for a scheme that signs it; what is sent then is that buffer. */
  whole(): Buffer {
    if (this.#list.length > 1) this.#list = [Buffer.concat(this.#list)];
    return this.#list[0]!;
  }
}

/** Small neighbours become one piece. */
function few(parts: readonly Buffer[]): Buffer[] {
  const list: Buffer[] = [];
  let small: Buffer[] = [];
  const join = () => {
    if (small.length > 0) list.push(lastingPiece(small));
    small = [];
  };
  for (const part of parts) {
    if (part.length < SMALL) {
      small.push(part);
      continue;
    }
    join();
    list.push(part);
  }
  join();
  return list;
}
