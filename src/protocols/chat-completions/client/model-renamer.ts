// Replaces the model name in outgoing bytes whose events are all known.
import { unpooledFromText } from "../../../lib/unpooled-buffer.ts";

export class ModelRenamer {
  readonly #name: Buffer;
  /** Start and end offsets of the names, alternating. */
  #at: number[] = [];
  #shorter = 0;

  constructor(model: string) {
    this.#name = unpooledFromText(JSON.stringify(model));
  }

  /** Adds the position of the next name. */
  add(from: number, to: number): void {
    this.#at.push(from, to);
    this.#shorter += to - from;
  }

  /** Returns the bytes in [from, to) with all names replaced, in one buffer. */
  of(b: Buffer, from: number, to: number): Buffer {
    const at = this.#at;
    const name = this.#name;
    const out = Buffer.allocUnsafe(to - from - this.#shorter + (at.length >> 1) * name.length);
    let end = 0;
    for (let i = 0; i < at.length; i += 2) {
      end += b.copy(out, end, from, at[i]);
      end += name.copy(out, end);
      from = at[i + 1]!;
    }
    b.copy(out, end, from, to);
    at.length = 0;
    this.#shorter = 0;
    return out;
  }
}
