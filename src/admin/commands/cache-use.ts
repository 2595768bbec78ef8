// Summarizes the use of prompt caches from sums of the ledger.
import { cacheReadTokens, inputTokens, type Usage } from "../../model/usage.ts";
import type { LedgerTotal } from "../../plugin/store/ledger-entry.ts";
import type { TotalsBy } from "../../plugin/store/store.ts";

/** Use of prompt caches by one group of calls. All counts are tokens. */
export interface CacheUse {
  readonly name: string;
  readonly calls: number;
  readonly input: number;
  readonly read: number;
  readonly written: number;
  /** Tokens written by this group for a model and credential from whose cache it read nothing. */
  readonly unread: number;
}

/** Groups of calls: a dimension, or the members of a scope. */
export interface CacheGroup {
  readonly dimension: TotalsBy;
  /** Start of the labels of the scope's members. */
  readonly prefix?: string;
}

/** Returns the dimensions of the sums from which the use is summarized. */
export const cacheDimensions = ({ dimension }: CacheGroup): readonly TotalsBy[] => [
  ...new Set<TotalsBy>([dimension, "model", "credential"]),
];

/** Returns the use of each group, with the largest input first. */
export function summarizeCaches(
  rows: readonly Pick<LedgerTotal, "by" | "calls" | "usage">[],
  { dimension, prefix = "" }: CacheGroup,
): readonly CacheUse[] {
  const groups = new Map<string, CacheUse>();
  for (const { by, calls, usage } of rows) {
    const value = by[dimension] ?? "";
    if (!value.startsWith(prefix)) continue;
    const name = value.slice(prefix.length);
    const before = groups.get(name) ?? { name, calls: 0, input: 0, read: 0, written: 0, unread: 0 };
    const [read, written] = [cacheReadTokens(usage), writtenTokens(usage)];
    groups.set(name, {
      name,
      calls: before.calls + calls,
      input: before.input + inputTokens(usage),
      read: before.read + read,
      written: before.written + written,
      unread: before.unread + (read === 0 ? written : 0),
    });
  }
  return [...groups.values()].toSorted((a, b) => b.input - a.input);
}

const writtenTokens = (usage: Usage): number =>
  (usage.cache_write_5m ?? 0) +
  (usage.cache_write_30m ?? 0) +
  (usage.cache_write_1h ?? 0) +
  (usage.cache_write_12h ?? 0);
