// Encrypts data with its context, so that it cannot be used in another one.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Json } from "tollgate/plugin";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Keys of 32 bytes. The first one encrypts, and all of them decrypt. */
export type SealKeys = readonly Uint8Array[];

/** Encrypts a value. `context` is authenticated and not contained in the result. */
export function seal(keys: SealKeys, context: readonly string[], value: Json): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keys[0]!, nonce);
  cipher.setAAD(toBytes(context));
  const sealed = [nonce, cipher.update(JSON.stringify(value)), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString("base64url");
}

/** Decrypts a value. Undefined if it was changed, or sealed with another key or context. */
export function unseal(keys: SealKeys, context: readonly string[], text: string): Json | undefined {
  const sealed = Buffer.from(text, "base64url");
  const end = sealed.length - TAG_BYTES;
  if (end <= NONCE_BYTES) return undefined;
  for (const key of keys)
    try {
      const nonce = sealed.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(toBytes(context));
      decipher.setAuthTag(sealed.subarray(end));
      const content = [decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()];
      return JSON.parse(Buffer.concat(content).toString()) as Json;
    } catch {
      // Another key may decrypt it.
    }
  return undefined;
}

const toBytes = (context: readonly string[]): Buffer => Buffer.from(JSON.stringify(context));
