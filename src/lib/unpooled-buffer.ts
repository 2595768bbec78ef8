// Buffers that last as long as an answer. Node cuts small buffers, one after the other, out of blocks of 64 KB, and one that lasts holds
// its whole block: a thousand open streams would hold 64 MB of what is long over. These are cut out of small blocks, beside
// their like.
const BLOCK = 8 * 1024;

let block = Buffer.allocUnsafeSlow(BLOCK);
let at = 0;

function allocateUnpooled(size: number): Buffer {
  if (size > BLOCK / 2) return Buffer.allocUnsafeSlow(size);
  if (at + size > BLOCK) {
    block = Buffer.allocUnsafeSlow(BLOCK);
    at = 0;
  }
  return block.subarray(at, (at += size));
}

export function unpooledFromText(text: string): Buffer {
  const out = allocateUnpooled(Buffer.byteLength(text));
  out.write(text);
  return out;
}

/** All of them in one piece. */
export function unpooledConcat(parts: readonly Buffer[]): Buffer {
  let size = 0;
  for (const part of parts) size += part.length;
  const out = allocateUnpooled(size);
  let end = 0;
  for (const part of parts) end += part.copy(out, end);
  return out;
}

/** So large a read is not held for a few of its bytes. */
const LARGE_READ = 8 * 1024;

/** A part of what was read that is kept when the rest has gone: a copy, where it would hold much more than itself. */
export function unpooledSlice(bytes: Buffer, from: number, to = bytes.length): Buffer {
  const held = bytes.buffer.byteLength;
  if (held < LARGE_READ || to - from > held / 2) return bytes.subarray(from, to);
  const out = Buffer.allocUnsafeSlow(to - from);
  bytes.copy(out, 0, from, to);
  return out;
}
