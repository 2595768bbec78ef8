// Frees the memory of pieces that were written. Otherwise, V8 frees it with the next collection,
// and tens of megabytes of a large file can wait for that.

/** Yields pieces, and frees each one when the next one is requested. The caller must own them. */
export async function* releasePieces(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  for await (const piece of pieces) {
    yield piece;
    releasePiece(piece);
  }
}

/** Frees a piece, unless its memory has other parts. */
export function releasePiece({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached)
    buffer.transfer(0);
}
