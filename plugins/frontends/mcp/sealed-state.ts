// Encrypts data that clients keep for the gateway, such as sessions and the state of a request that
// needs input. Any gateway on the same store can open it.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Context, JsonObject } from "tollgate/plugin";

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Longest sealed text that is opened, in characters. */
const MAX_LENGTH = 64 * 1024;

export class SealedState {
  readonly #secret: Uint8Array;

  constructor(ctx: Pick<Context, "deriveSecret">) {
    this.#secret = ctx.deriveSecret("mcp state");
  }

  /** Encrypts data. `purpose` must be the same when it is opened. */
  seal(purpose: string, data: JsonObject): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#secret, iv);
    cipher.setAAD(Buffer.from(purpose));
    const text = Buffer.concat([cipher.update(JSON.stringify(data)), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
  }

  /** Returns the data, or undefined if the text was not sealed for this purpose. */
  open(purpose: string, sealed: string): JsonObject | undefined {
    if (sealed.length > MAX_LENGTH) return undefined;
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length < IV_BYTES + TAG_BYTES) return undefined;
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#secret, bytes.subarray(0, IV_BYTES));
      decipher.setAAD(Buffer.from(purpose));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const text = Buffer.concat([
        decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)),
        decipher.final(),
      ]);
      return JSON.parse(text.toString()) as JsonObject;
    } catch {
      return undefined;
    }
  }
}
