// Ids of requests: unique across restarts and processes, and free, for they are a prefix of this process and a counter.

const PROCESS_PREFIX = Array.from(crypto.getRandomValues(new Uint8Array(9)), (n) =>
  "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz".charAt(n % 53),
).join("");
let count = 0;

/** Joined, and not added: a sum of texts is kept in two parts, and where `JSON.stringify` meets one it begins anew, on a slower way. */
export const nextRequestId = (): string =>
  [PROCESS_PREFIX, (++count).toString(36).padStart(7, "0")].join("");
