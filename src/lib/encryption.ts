// Authenticated encryption of small data, such as state that clients or the store keep for a plugin.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts and authenticates data. `key` has 32 bytes, such as the result of `ctx.deriveSecret`.
 * `context` is authenticated and not contained in the result: the data can be decrypted only with
 * the same context.
 *
 *     const state = encrypt(ctx.deriveSecret("sign-in"), JSON.stringify(data), x.identity.id);
 */
export function encrypt(key: Uint8Array, data: string | Uint8Array, context = ""): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const text = typeof data === "string" ? cipher.update(data, "utf8") : cipher.update(data);
  return Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]);
}

/**
 * Decrypts the result of `encrypt`. Returns undefined if it was changed, or encrypted with another
 * key or context.
 */
export function decrypt(key: Uint8Array, encrypted: Uint8Array, context = ""): Buffer | undefined {
  const end = encrypted.length - TAG_BYTES;
  if (end < NONCE_BYTES) return undefined;
  try {
    const nonce = encrypted.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(encrypted.subarray(end));
    const text = decipher.update(encrypted.subarray(NONCE_BYTES, end));
    return Buffer.concat([text, decipher.final()]);
  } catch {
    return undefined;
  }
}
