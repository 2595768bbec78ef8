// Builds PostgreSQL array literals. The driver's own conversion inspects every value and takes
// twice as long.

/** An array element. null becomes NULL. Numbers may already be text. */
export type ArrayItem = string | number | bigint | null;

const SPECIAL = /["\\]/g;

/** Returns the literal of a text array. */
export function textArray(items: readonly (string | null)[]): string {
  let out = "{";
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (i > 0) out += ",";
    if (item === null) out += "NULL";
    else
      out += `"${item.includes('"') || item.includes("\\") ? item.replace(SPECIAL, "\\$&") : item}"`;
  }
  return `${out}}`;
}

/** Returns the literal of a number array. */
export function numberArray(items: readonly ArrayItem[]): string {
  let out = "{";
  for (let i = 0; i < items.length; i++) out += `${i > 0 ? "," : ""}${items[i] ?? "NULL"}`;
  return `${out}}`;
}

/**
 * Compares texts by their UTF-8 bytes, as the database and all nodes sort them. This differs from
 * JavaScript's string order only where surrogates meet code units above them.
 */
export function compareBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = codePointRank(a.charCodeAt(i)) - codePointRank(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

const codePointRank = (unit: number): number =>
  unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
