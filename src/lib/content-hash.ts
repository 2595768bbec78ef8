// What a file says, as a hash: whether it has changed is asked of this, because a touch is no change.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

/** Files, and the hash of what was read of each; undefined: it was too large to be read. */
export type FileHashes = ReadonlyMap<string, string | undefined>;

export const hashContent = (text: string | Buffer): string =>
  createHash("sha256").update(text).digest("base64");

/** Two of a file are equal when it says the same, or cannot be read for the same reason. */
export async function readContentHash(file: string): Promise<string> {
  try {
    return hashContent(await readFile(file));
  } catch (error) {
    return `${(error as NodeJS.ErrnoException).code}`;
  }
}
