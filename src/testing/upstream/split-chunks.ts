import { createSeededRandom } from "../random.ts";

/**
 * How bytes are split. A piece is an event or a complete JSON text. `pieces`: one piece at a time.
 * `whole`: all together. `bytes`: byte by byte. Otherwise: a number of bytes at a time, at given
 * offsets, or at random. `max` is the longest random chunk. Default: 64.
 */
export type Chunks =
  | "pieces"
  | "whole"
  | "bytes"
  | number
  | { readonly at: readonly number[] }
  | { readonly seed: number; readonly max?: number };

/** Returns the same bytes in other chunks. */
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
