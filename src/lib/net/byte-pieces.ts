// Collects bytes that arrive in pieces. The sender determines how small the pieces are, and an object
// of JavaScript for each byte needs a hundred times the memory of the byte.

/** Number of pieces that are joined. */
const RUN = 256;

export class BytePieces {
  #pieces: Buffer[] = [];
  /** Number of buffers at the beginning that are joined pieces. */
  #joined = 0;
  #size = 0;

  /** Size of all pieces, in bytes. */
  get size(): number {
    return this.#size;
  }

  /** Adds a piece. Each byte is copied at most once before `take`. */
  add(piece: Buffer): void {
    this.#size += piece.length;
    if (this.#pieces.push(piece) - this.#joined < RUN) return;
    const run = this.#pieces.splice(this.#joined);
    this.#joined = this.#pieces.push(Buffer.concat(run));
  }

  /** Returns the bytes in one buffer, and removes them. One piece is returned as it is. */
  take(): Buffer {
    const pieces = this.#pieces;
    const size = this.#size;
    this.#pieces = [];
    this.#joined = this.#size = 0;
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size);
  }
}
