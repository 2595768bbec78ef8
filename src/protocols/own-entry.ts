/** What stands under a word from outside: "constructor" and "__proto__" are on every table, and in none. */
export const ownEntry = <T>(table: { readonly [word: string]: T }, word: unknown): T | undefined =>
  typeof word === "string" && Object.hasOwn(table, word) ? table[word] : undefined;
