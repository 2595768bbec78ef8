// Reads the body of a response that another party sent, up to a size.

/**
 * Returns the bytes of a body. Returns undefined if it is larger than `maxBytes`. The rest is then
 * not received.
 */
export async function readBoundedBody(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.length;
    if (length > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}
