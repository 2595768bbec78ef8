// Pages of a listing: what comes after a cursor, as many as were asked for.
import type { KeyRecord, ResultPage, Opt, PageRequest } from "../plugin/index.ts";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/** How many items a page has: what was asked for, within bounds. */
export const pageSize = (page: Opt<PageRequest>): number =>
  Math.max(1, Math.min(MAX_PAGE_SIZE, Math.floor(page?.limit ?? DEFAULT_PAGE_SIZE)));

/** `found` may hold one more than fits; that is how a next page is known. */
export function toPage<T>(
  found: readonly T[],
  size: number,
  cursor: (item: T) => string,
): ResultPage<T> {
  if (found.length <= size) return { items: found };
  const items = found.slice(0, size);
  return { items, next: cursor(items[size - 1]!) };
}

/** Keys are listed in the order in which they were made. */
export const keyCursor = ({ created, digest }: KeyRecord): string =>
  `${String(Math.floor(created)).padStart(16, "0")}:${digest}`;
