// Creates request IDs that are unique across restarts and processes. An ID consists of a random
// prefix per process and a counter, so creating one takes little time.

const PROCESS_PREFIX = Array.from(crypto.getRandomValues(new Uint8Array(9)), (n) =>
  "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz".charAt(n % 53),
).join("");
let count = 0;

/**
 * The parts are joined instead of concatenated: V8 keeps a concatenated string in two parts, and
 * `JSON.stringify` then restarts on a slower path.
 */
export const nextRequestId = (): string =>
  [PROCESS_PREFIX, (++count).toString(36).padStart(7, "0")].join("");
