// Copies of a client's response, for hooks and frontends that requested one.
interface Recording {
  readonly max: number;
  size: number;
  parts: Buffer[];
  resolve(parts: Buffer[] | null): void;
}

/** Joins the chunks of a response. */
export function concatChunks(pieces: readonly (Buffer | string)[]): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && Buffer.isBuffer(first)) return first;
  return Buffer.concat(pieces.map((one) => (typeof one === "string" ? Buffer.from(one) : one)));
}

export class Recordings {
  readonly #all: Recording[] = [];

  /**
   * Resolves to the complete response. Resolves to null if it was truncated or is larger than `max`
   * bytes.
   */
  add(max: number): Promise<Buffer[] | null> {
    return new Promise((done) => this.#all.push({ max, size: 0, parts: [], resolve: done }));
  }

  /** Discards the copies because another call starts to answer. */
  restart(): void {
    for (const one of this.#all) {
      one.parts = [];
      one.size = 0;
    }
  }

  copy(chunk: Buffer | string): void {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    for (const one of this.#all) {
      one.size += bytes.length;
      if (one.size <= one.max) one.parts.push(bytes);
      else one.parts = [];
    }
  }

  /** Ends the recordings. `isComplete`: whether the complete response was received. */
  end(isComplete: boolean): void {
    for (const one of this.#all) one.resolve(isComplete && one.size <= one.max ? one.parts : null);
  }
}
