// Allocates buffers that are kept as long as a response. Node allocates small buffers from shared
// blocks of 64 KB, and one buffer in use keeps its whole block in memory. With 1,000 open streams,
// up to 64 MB of unused data would stay in memory. These buffers are allocated from separate small
// blocks.
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

/** Concatenates the parts in one buffer. */
export function unpooledConcat(parts: readonly Buffer[]): Buffer {
  let size = 0;
  for (const part of parts) size += part.length;
  const out = allocateUnpooled(size);
  let end = 0;
  for (const part of parts) end += part.copy(out, end);
  return out;
}

/** Size in bytes above which a read is not kept in memory for a small part of it. */
const LARGE_READ = 8 * 1024;

/**
 * Returns a part of a read that outlives the read. Copies it if a view would retain more than twice
 * its size.
 */
export function unpooledSlice(bytes: Buffer, from: number, to = bytes.length): Buffer {
  const held = bytes.buffer.byteLength;
  if (held < LARGE_READ || to - from > held / 2) return bytes.subarray(from, to);
  const out = Buffer.allocUnsafeSlow(to - from);
  bytes.copy(out, 0, from, to);
  return out;
}
