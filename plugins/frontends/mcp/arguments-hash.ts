// Keyed hashes of the arguments of calls, for the ledger.
import { hash } from "node:crypto";
import type { JsonObject } from "tollgate/plugin";
import { canonicalJson } from "./json-rpc.ts";

/** Size of a block of SHA-256, in bytes. */
const BLOCK = 64;
const [INNER_PAD, OUTER_PAD] = [0x36, 0x5c];
const DIGEST_BYTES = 32;
/** Length of the hash in the ledger, in characters. */
const HASH_LENGTH = 32;

/**
 * Computes HMAC-SHA-256 by two hashes. An `Hmac` of Node has its own native object, whose creation
 * costs more than both.
 */
export class ArgumentsHash {
  readonly #inner: Buffer;
  /** Padded key, and room for the inner hash. */
  readonly #outer: Buffer;

  /** @param key Up to 64 bytes. */
  constructor(key: Uint8Array) {
    const padded = (pad: number) => {
      const block = Buffer.alloc(BLOCK, pad);
      for (const [at, byte] of key.entries()) block[at] = byte ^ pad;
      return block;
    };
    this.#inner = padded(INNER_PAD);
    this.#outer = Buffer.concat([padded(OUTER_PAD), Buffer.alloc(DIGEST_BYTES)]);
  }

  /** Equal arguments have equal hashes, which can be computed only with the key. */
  of(values: JsonObject): string {
    const text = canonicalJson(values);
    const message = Buffer.allocUnsafe(BLOCK + Buffer.byteLength(text));
    this.#inner.copy(message);
    message.write(text, BLOCK);
    // A string of bytes costs less than a buffer with its own memory.
    this.#outer.write(hash("sha256", message, "binary"), BLOCK, "latin1");
    return hash("sha256", this.#outer).slice(0, HASH_LENGTH);
  }
}
