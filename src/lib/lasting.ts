// Buffers that last as long as an answer. Node cuts small buffers, one after the other, out of blocks of 64 KB, and one that lasts holds
// its whole block: a thousand open streams would hold 64 MB of what is long over. These are cut out of small blocks, beside
// their like.
const BLOCK = 8 * 1024;

let block = Buffer.allocUnsafeSlow(BLOCK);
let at = 0;

function lasting(size: number): Buffer {
  if (size > BLOCK / 2) return Buffer.allocUnsafeSlow(size);
  if (at + size > BLOCK) {
    block = Buffer.allocUnsafeSlow(BLOCK);
    at = 0;
  }
  return block.subarray(at, (at += size));
}

export function lastingText(text: string): Buffer {
  const out = lasting(Buffer.byteLength(text));
  out.write(text);
  return out;
}

/** All of them in one piece. */
export function lastingPiece(parts: readonly Buffer[]): Buffer {
  let size = 0;
  for (const part of parts) size += part.length;
  const out = lasting(size);
  let end = 0;
  for (const part of parts) end += part.copy(out, end);
  return out;
}

/** A copy that holds nothing else. */
export function alone(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(out);
  return out;
}
