import { createSeededRandom } from "../random.ts";

/**
 * How bytes are cut: a piece at a time (an event, or all of a JSON text), everything at once, byte by byte, so many
 * bytes at a time, at these offsets, or by chance (`max`: the longest chunk, 64 unless told).
 */
export type Chunks =
  | "pieces"
  | "whole"
  | "bytes"
  | number
  | { readonly at: readonly number[] }
  | { readonly seed: number; readonly max?: number };

/** The same bytes in other helpings. */
export function splitChunks(pieces: readonly Buffer[], how: Chunks): Buffer[] {
  if (how === "pieces") return pieces.filter((piece) => piece.length > 0);
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  if (bytes.length === 0) return [];
  if (how === "whole") return [bytes];
  const chunks: Buffer[] = [];
  const upTo = (end: number) => {
    chunks.push(bytes.subarray(taken, end));
    taken = end;
  };
  let taken = 0;
  if (typeof how === "object" && "at" in how) {
    for (const offset of how.at) if (offset > taken && offset < bytes.length) upTo(offset);
    upTo(bytes.length);
    return chunks;
  }
  const next = chunkSizes(how);
  while (taken < bytes.length) upTo(Math.min(bytes.length, taken + next()));
  return chunks;
}

function chunkSizes(how: "bytes" | number | { readonly seed: number; readonly max?: number }) {
  if (how === "bytes") return () => 1;
  if (typeof how === "number") return () => Math.max(1, Math.floor(how));
  const chance = createSeededRandom(how.seed);
  return () => 1 + Math.floor(chance() * (how.max ?? 64));
}
