import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "../../model/error.ts";

/** A folder's own secret. The first process makes it, whole or not at all; all others, and all later ones, read it. */
export async function signingKey(dir: string): Promise<Buffer> {
  const path = join(dir, "key");
  const half = join(dir, `${randomBytes(9).toString("hex")}.tmp`);
  const file = await open(half, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(32));
    await file.sync();
  } finally {
    await file.close();
  }
  // Unlike rename, link does not replace a key that is there.
  await link(half, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(half, { force: true });
  const key = await readFile(path);
  if (key.length !== 32)
    fail("internal", `${path} is damaged. Remove it: addresses given out before it end with it.`);
  return key;
}
