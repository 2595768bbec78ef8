/**
 * Returns the table entry for an untrusted key. Inherited keys such as "constructor" and
 * "__proto__" have no entry.
 */
export const ownEntry = <T>(table: { readonly [word: string]: T }, word: unknown): T | undefined =>
  typeof word === "string" && Object.hasOwn(table, word) ? table[word] : undefined;
