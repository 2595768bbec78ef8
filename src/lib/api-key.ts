// A client's key: tg_<id, 10><secret, 43><crc32, 6>, base62. The id is public, the secret is 256 random bits,
// and the check sum lets every reader refuse a mistyped key, or find a leaked one, without asking a store. An admin token is
// made the same way and begins with ta_.
import { createHash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = /^(tg|ta)_([0-9A-Za-z]{10})([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export interface MintedKey {
  /** Public: what lists and logs show. */
  id: string;
  /** Shown once. */
  secret: string;
  /** What is stored. */
  digest: string;
}

/** With an id, a new secret for a key that is known already. */
export function mintKey(id = newKeyId(), as: "tg" | "ta" = "tg"): MintedKey {
  const stem = `${as}_${id}${base62(BigInt(`0x${randomBytes(32).toString("hex")}`), 43)}`;
  const secret = stem + checksum(stem);
  return { id, secret, digest: digestKey(secret) };
}

export const newKeyId = (): string =>
  Array.from({ length: 10 }, () => ALPHABET[randomInt(62)]).join("");

/** The public id, or undefined for what cannot be a key of ours. */
export function parseKey(secret: string, as: "tg" | "ta" = "tg"): { id: string } | undefined {
  const [, begins, id, , sum] = FORM.exec(secret) ?? [];
  return id !== undefined && begins === as && sum === checksum(secret.slice(0, -6))
    ? { id }
    : undefined;
}

/** SHA-256 of the whole key, hex: a key has 256 random bits, so a slow hash would only serve a flood of invented keys. */
export const digestKey = (secret: string): string =>
  createHash("sha256").update(secret, "utf8").digest("hex");

/** In constant time for digests of equal length. */
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
