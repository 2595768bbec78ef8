import { fail, type LedgerTotal } from "../plugin/index.ts";
import type { LedgerRow } from "./ledger-row.ts";

// JSON with big integers at any position in a record.
const TAG = "~bigint";

/** Returns a JSON text from which `fromJson` restores the same value, including big integers. */
export const toJson = (value: unknown): string => JSON.stringify(tagBigInts(value));

/**
 * Tags big integers. Returns the same value if there are none. A `JSON.stringify` replacer would
 * take ten times as long.
 */
function tagBigInts(value: unknown): unknown {
  if (typeof value === "bigint") return { [TAG]: String(value) };
  if (typeof value !== "object" || value === null) return value;
  // An object with `toJSON` defines its own JSON form.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return value;
  type Parts = { [name: string]: unknown };
  const of = value as Parts;
  let copy: Parts | undefined;
  for (const name of Object.keys(of)) {
    const part = tagBigInts(of[name]);
    if (part === of[name]) continue;
    copy ??= Array.isArray(value) ? ([...value] as unknown as Parts) : { ...of };
    copy[name] = part;
  }
  return copy ?? value;
}

/** Parses a text from `toJson`. Throws if the text is not JSON. */
export const fromJson = <T>(text: string): T =>
  JSON.parse(text, (_key, v: unknown) => {
    const tagged =
      v !== null && typeof v === "object" ? (v as { [TAG]?: unknown })[TAG] : undefined;
    return typeof tagged === "string" && /^-?\d+$/.test(tagged) ? BigInt(tagged) : v;
  }) as T;

// Helpers for moving a ledger from one store to another.

/** Grouping by which the totals of both stores must be equal. */
export const COMPARED_TOTALS = ["key", "model", "state", "price"] as const;

/** Number of rows per page of a transfer. */
export const TRANSFER_PAGE_ROWS = 5_000;

/** Yields runs of consecutive rows from the same instance. */
export function* splitByInstance(
  rows: readonly LedgerRow[],
): Generator<readonly LedgerRow[], void> {
  for (let from = 0, to = 1; from < rows.length; to++)
    if (rows[to]?.instance !== rows[from]!.instance) {
      yield rows.slice(from, to);
      from = to;
    }
}

/** Rejects an import whose totals differ from those of its source. */
export function assertSameTotals(
  own: readonly LedgerTotal[],
  source: readonly LedgerTotal[],
): void {
  if (toJson(own) !== toJson(source))
    fail(
      "invalid",
      `The totals of the imported rows differ from the source: ${own.length} groups here, ${source.length} in the source.`,
      { code: "other_sums" },
    );
}
