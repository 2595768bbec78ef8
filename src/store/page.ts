// Pages of a list: the items after a cursor, up to a page size.
import type { KeyRecord, ResultPage, Opt, PageRequest } from "../plugin/index.ts";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/** Returns the page size: the requested one, within limits. */
export const pageSize = (page: Opt<PageRequest>): number =>
  Math.max(1, Math.min(MAX_PAGE_SIZE, Math.floor(page?.limit ?? DEFAULT_PAGE_SIZE)));

/**
 * Creates a page. `found` may contain one item more than fits, which shows that there is a next
 * page.
 */
export function toPage<T>(
  found: readonly T[],
  size: number,
  cursor: (item: T) => string,
): ResultPage<T> {
  if (found.length <= size) return { items: found };
  const items = found.slice(0, size);
  return { items, next: cursor(items[size - 1]!) };
}

/** Cursor of a key. Keys are listed in the order of their creation. */
export const keyCursor = ({ created, digest }: KeyRecord): string =>
  `${String(Math.floor(created)).padStart(16, "0")}:${digest}`;
