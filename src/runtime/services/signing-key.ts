import { randomBytes, timingSafeEqual } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "../../model/error.ts";
import type { Store } from "../../plugin/store/store.ts";

/**
 * Returns the secret of a directory. The first process creates it atomically, and all other
 * processes read it.
 */
export async function readOrCreateSigningKey(dir: string): Promise<Buffer> {
  const path = join(dir, "key");
  const half = join(dir, `${randomBytes(9).toString("hex")}.tmp`);
  const file = await open(half, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(32));
    await file.sync();
  } finally {
    await file.close();
  }
  // Unlike `rename`, `link` does not replace an existing key.
  await link(half, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(half, { force: true });
  const key = await readFile(path);
  if (key.length !== 32)
    fail(
      "internal",
      `${path} is damaged. Remove it to create a new key; URLs signed with the old key become invalid.`,
    );
  return key;
}

/**
 * Returns the signing key that all gateways on a store share, and stores it in the directory. The
 * key of the first gateway becomes the shared key. If only one gateway uses the store, returns the
 * key of the directory.
 */
export async function agreeOnSigningKey(
  dir: string,
  { lease, getOrCreateShared }: Pick<Store, "lease" | "getOrCreateShared">,
): Promise<Buffer> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const own = await readOrCreateSigningKey(dir);
  if (!lease || !getOrCreateShared) return own;
  const common = Buffer.from(await getOrCreateShared("signing-key", async () => own));
  if (!common.equals(own)) await replaceKey(dir, common);
  return common;
}

async function replaceKey(dir: string, key: Buffer): Promise<void> {
  const half = join(dir, `${randomBytes(9).toString("hex")}.tmp`);
  const file = await open(half, "wx", 0o600);
  try {
    await file.writeFile(key);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(half, join(dir, "key"));
}

/** Compares two signatures in constant time. */
export function isEqualSignature(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
