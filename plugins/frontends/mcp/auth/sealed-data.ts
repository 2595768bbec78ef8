// Encrypts data with its context, so that it cannot be used in another one.
import { decrypt, encrypt, type Json } from "tollgate/plugin";

/** Keys of 32 bytes. The first one encrypts, and all of them decrypt. */
export type SealKeys = readonly Uint8Array[];

/** Encrypts a value. `context` is authenticated and not contained in the result. */
export const seal = (keys: SealKeys, context: readonly string[], value: Json): string =>
  encrypt(keys[0]!, JSON.stringify(value), JSON.stringify(context)).toString("base64url");

/** Decrypts a value. Undefined if it was changed, or sealed with another key or context. */
export function unseal(keys: SealKeys, context: readonly string[], text: string): Json | undefined {
  const sealed = Buffer.from(text, "base64url");
  for (const key of keys) {
    const content = decrypt(key, sealed, JSON.stringify(context));
    if (content) return JSON.parse(content.toString()) as Json;
  }
  return undefined;
}
