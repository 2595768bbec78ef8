// Keyed hashes of the arguments of calls, for the ledger.
import { hash } from "node:crypto";
import type { JsonObject } from "tollgate/plugin";
import { canonicalJson } from "./json-rpc.ts";

/** Size of a block of SHA-256, in bytes. */
const BLOCK = 64;
const [INNER_PAD, OUTER_PAD] = [0x36, 0x5c];
const HASH_LENGTH = 32;

/**
 * Computes HMAC-SHA-256 by two hashes. An `Hmac` of Node has its own native object, whose creation
 * costs more than both.
 */
export class ArgumentsHash {
  readonly #inner: Buffer;
  readonly #outer: Buffer;

  /** @param key Up to 64 bytes. */
  constructor(key: Uint8Array) {
    const padded = (pad: number) => {
      const block = Buffer.alloc(BLOCK, pad);
      for (const [at, byte] of key.entries()) block[at] = byte ^ pad;
      return block;
    };
    this.#inner = padded(INNER_PAD);
    this.#outer = padded(OUTER_PAD);
  }

  /** Equal arguments have equal hashes, which can be computed only with the key. */
  of(values: JsonObject): string {
    const text = Buffer.from(canonicalJson(values));
    const inner = hash("sha256", Buffer.concat([this.#inner, text]), "buffer");
    const digest = hash("sha256", Buffer.concat([this.#outer, inner]));
    return digest.slice(0, HASH_LENGTH);
  }
}
