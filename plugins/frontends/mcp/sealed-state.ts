// Encrypts data that clients keep for the gateway, such as sessions and the state of a request that
// needs input. Any gateway on the same store can open it.
import { decrypt, encrypt, type Context, type JsonObject } from "tollgate/plugin";

/** Longest sealed text that is opened, in characters. */
const MAX_LENGTH = 64 * 1024;

export class SealedState {
  readonly #secret: Uint8Array;

  constructor(ctx: Pick<Context, "deriveSecret">) {
    this.#secret = ctx.deriveSecret("mcp state");
  }

  /** Encrypts data. `purpose` must be the same when it is opened. */
  seal(purpose: string, data: JsonObject): string {
    return encrypt(this.#secret, JSON.stringify(data), purpose).toString("base64url");
  }

  /** Returns the data, or undefined if the text was not sealed for this purpose. */
  open(purpose: string, sealed: string): JsonObject | undefined {
    if (sealed.length > MAX_LENGTH) return undefined;
    const text = decrypt(this.#secret, Buffer.from(sealed, "base64url"), purpose);
    return text && (JSON.parse(text.toString()) as JsonObject);
  }
}
