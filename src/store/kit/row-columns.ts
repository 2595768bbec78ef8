// The columns of ledger rows and of their terms, for stores that keep a row in columns.

/** Units that nearly every call reports. They have columns, so sums need no JSON parsing. */
export const UNIT_COLUMNS = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "output",
  "reasoning",
] as const;

/** Columns of a ledger row, in the order in which the chain hashes them. */
export const ROW_COLUMNS = [
  "kind",
  "attempt",
  "qualifier",
  "started_at",
  "at",
  "state",
  "outcome",
  "cost",
  "hold",
  "upstream_id",
  ...UNIT_COLUMNS,
  "usage",
  "rest",
] as const;

/** SQL types of the columns that are not text. */
export const COLUMN_TYPES: { readonly [name: string]: string } = {
  kind: "smallint",
  started_at: "bigint",
  at: "bigint",
  cost: "bigint",
  hold: "bigint",
  ...Object.fromEntries(UNIT_COLUMNS.map((unit) => [unit, "bigint"])),
};

/**
 * Columns of the terms. The chain hashes them after the row's columns, except `salt`, which is part
 * of the label hashes.
 */
export const TERMS_COLUMNS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
  "price",
  "how",
  "labels",
  "salt",
] as const;

/** All columns of a row and its terms. */
export const ALL_COLUMNS = [...ROW_COLUMNS, ...TERMS_COLUMNS] as const;

const isNumberColumn = ROW_COLUMNS.map((name) => name in COLUMN_TYPES);
/**
 * Returns the row's part of its chain line: numbers, lengths of texts, then the texts. Null and
 * empty differ, and text of one column cannot be mistaken for another's.
 */
export function chainLine(columns: readonly (string | null)[]): string {
  let [numbers, lengths, texts] = ["", "", ""];
  for (let i = 0; i < ROW_COLUMNS.length; i++) {
    const column = columns[i]!;
    if (isNumberColumn[i]) numbers += `${column ?? ""} `;
    else if (column === null) lengths += " ";
    else {
      lengths += `${Buffer.byteLength(column)} `;
      texts += column;
    }
  }
  return numbers + lengths + texts;
}
