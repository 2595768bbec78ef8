// Hashes file contents. Changes are detected by hash, because a new modification time does not
// imply a change.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

/** Content hash by file path. Undefined if the file was too large to read. */
export type FileHashes = ReadonlyMap<string, string | undefined>;

export const hashContent = (text: string | Buffer): string =>
  createHash("sha256").update(text).digest("base64");

/**
 * Returns the hash of the file's content, or the error code if the file cannot be read. Two results
 * are equal if the content is equal or reading failed for the same reason.
 */
export async function readContentHash(file: string): Promise<string> {
  try {
    return hashContent(await readFile(file));
  } catch (error) {
    return `${(error as NodeJS.ErrnoException).code}`;
  }
}
