// IDs and keys of files. An ID contains a code over its owner, so a foreign ID is rejected without
// a query, in the same time whether it exists or not. The key of a file is random. Its record
// contains it, encrypted for its owner, so deleting the record makes the content unreadable.
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { decrypt, encrypt, fail } from "tollgate/plugin";

const RANDOM_BYTES = 16;
const CODE_BYTES = 8;
/** Length of a time in an ID, which replaces the first random bytes. */
const TIME_BYTES = 6;

/** An ID: its kind, and the rest. */
const ID = /^([a-z]+)[-_]([\w-]{32})$/;

export interface FileSecrets {
  /**
   * Creates the ID of a new object of this kind and owner, without its prefix.
   * @param createdAt Time that the ID contains, in Unix milliseconds. Default: none.
   */
  createId(kind: string, owner: string, createdAt?: number): string;
  /** Returns an ID without its prefix. Undefined if it is of another kind or owner. */
  parseId(id: string, kind: string, owner: string): string | undefined;
  /** Encrypts the key of a file for its owner. */
  wrapKey(owner: string, id: string, key: Uint8Array): string;
  /** Decrypts the key of a file. Throws if it belongs to another file or owner. */
  unwrapKey(owner: string, id: string, wrapped: string): Buffer;
}

/** Returns the time in an ID that was created with one. */
export const createdAtOfId = (id: string): number =>
  Buffer.from(id, "base64url").readUIntBE(0, TIME_BYTES);

/** @param secret A secret of all gateways on the store. */
export function createFileSecrets(secret: Uint8Array): FileSecrets {
  const derive = (name: string) => Buffer.from(hkdfSync("sha256", secret, "", name, 32));
  const idKey = derive("file ids");
  const codeOf = (kind: string, owner: string, random: Uint8Array): Buffer =>
    createHmac("sha256", idKey)
      .update(random)
      .update(`${kind}\0${owner}`)
      .digest()
      .subarray(0, CODE_BYTES);
  const ownerKey = (owner: string) => derive(`file keys of ${owner}`);
  return {
    createId(kind, owner, createdAt) {
      const random = randomBytes(RANDOM_BYTES);
      if (createdAt !== undefined) random.writeUIntBE(createdAt, 0, TIME_BYTES);
      return Buffer.concat([random, codeOf(kind, owner, random)]).toString("base64url");
    },
    parseId(id, kind, owner) {
      const [, prefix, text] = ID.exec(id) ?? [];
      const bytes = Buffer.from(text ?? "", "base64url");
      const isWhole = prefix === kind && bytes.length === RANDOM_BYTES + CODE_BYTES;
      const checked = isWhole ? bytes : Buffer.alloc(RANDOM_BYTES + CODE_BYTES);
      const expected = codeOf(kind, owner, checked.subarray(0, RANDOM_BYTES));
      const isOwn = timingSafeEqual(expected, checked.subarray(RANDOM_BYTES));
      return isWhole && isOwn ? text : undefined;
    },
    wrapKey: (owner, id, key) => encrypt(ownerKey(owner), key, id).toString("base64url"),
    unwrapKey: (owner, id, wrapped) =>
      decrypt(ownerKey(owner), Buffer.from(wrapped, "base64url"), id) ??
      fail("internal", "The key of a file cannot be decrypted."),
  };
}
