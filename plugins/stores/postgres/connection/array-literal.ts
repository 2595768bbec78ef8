// Arrays as PostgreSQL reads them. Built here, because the driver's own way looks at every value and takes twice as long.

/** A value of an array: null is NULL. Numbers have been written as text already. */
export type ArrayItem = string | number | bigint | null;

const SPECIAL = /["\\]/g;

/** Of texts. */
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

/** Of numbers. */
export function numberArray(items: readonly ArrayItem[]): string {
  let out = "{";
  for (let i = 0; i < items.length; i++) out += `${i > 0 ? "," : ""}${items[i] ?? "NULL"}`;
  return `${out}}`;
}

/** The order that texts have by their bytes, which is the database's and every node's: only where halves of a pair of UTF-16 meet what is behind them is it not that of strings. */
export function compareBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = codePointRank(a.charCodeAt(i)) - codePointRank(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

const codePointRank = (unit: number): number =>
  unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
