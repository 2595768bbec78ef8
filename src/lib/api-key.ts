// Creates and parses client keys: `tg_<id, 10><secret, 43><crc32, 6>` in base62. The ID is public,
// and the secret consists of 256 random bits. With the checksum, a program can reject a mistyped
// key, or recognize a leaked key, without a store lookup. Admin tokens have the same format with
// the prefix `ta_`.
import { createHash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = /^(tg|ta)_([0-9A-Za-z]{10})([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export interface MintedKey {
  /** Public id, shown in lists and logs. */
  id: string;
  /** The full key. It is shown only once. */
  secret: string;
  /** Stored form of the key. */
  digest: string;
}

/** Creates a key. If an existing ID is passed, a new secret for that key is created. */
export function mintKey(id = newKeyId(), as: "tg" | "ta" = "tg"): MintedKey {
  const stem = `${as}_${id}${base62(BigInt(`0x${randomBytes(32).toString("hex")}`), 43)}`;
  const secret = stem + checksum(stem);
  return { id, secret, digest: digestKey(secret) };
}

export const newKeyId = (): string =>
  Array.from({ length: 10 }, () => ALPHABET[randomInt(62)]).join("");

/** Returns the public id, or undefined if the text cannot be a Tollgate key. */
export function parseKey(secret: string, as: "tg" | "ta" = "tg"): { id: string } | undefined {
  const [, begins, id, , sum] = FORM.exec(secret) ?? [];
  return id !== undefined && begins === as && sum === checksum(secret.slice(0, -6))
    ? { id }
    : undefined;
}

/**
 * SHA-256 of the whole key, in hex. A key has 256 random bits, so a slow hash would add no security
 * and would help a flood of invented keys.
 */
export const digestKey = (secret: string): string =>
  createHash("sha256").update(secret, "utf8").digest("hex");

/** Compares two digests, in constant time if their lengths are equal. */
export function equalDigests(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

const checksum = (stem: string): string => base62(BigInt(crc32(stem)), 6);

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest /= 62n)
    text = ALPHABET[Number(rest % 62n)] + text;
  return text;
}
