// Creates request ids that are unique across restarts and processes. They are cheap: a random
// prefix per process and a counter.

const PROCESS_PREFIX = Array.from(crypto.getRandomValues(new Uint8Array(9)), (n) =>
  "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz".charAt(n % 53),
).join("");
let count = 0;

/**
 * Joined rather than concatenated: V8 keeps a concatenated string in two parts, and
 * `JSON.stringify` restarts on a slower path when it finds one.
 */
export const nextRequestId = (): string =>
  [PROCESS_PREFIX, (++count).toString(36).padStart(7, "0")].join("");
