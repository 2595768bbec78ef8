// Summarizes the use of prompt caches from sums of the ledger, with the places at which requests
// differ from what their conversation sent before.
import { cacheReadTokens, inputTokens, type Usage } from "../../model/usage.ts";
import {
  PROMPT_PLACE_LABEL,
  PROMPT_SECTION_LABEL,
  PROMPT_SECTIONS,
} from "../../plugin/exchange.ts";
import type { LedgerQuery, LedgerTotal } from "../../plugin/store/ledger-entry.ts";
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

/** A place at which requests first differ from the previous request of their conversation. */
export interface PromptDifference {
  /** Part of the request, with the position in the compared text. */
  readonly place: string;
  readonly calls: number;
}

/** Changes of what earlier requests sent, by one group of calls. */
export interface PromptChanges {
  /** Calls of requests that change what an earlier request of their conversation sent. */
  readonly changed: number;
  /** The most frequent places of the first difference. */
  readonly differences: readonly PromptDifference[];
}

/** Groups of calls: a dimension, or the members of a scope. */
export interface CacheGroup {
  readonly dimension: TotalsBy;
  /** Start of the labels of the scope's members. */
  readonly prefix?: string;
}

/** Maximum number of places per group. */
const MAX_DIFFERENCES = 3;

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

/** Returns the dimensions of the sums from which changes are summarized. */
export const changeDimensions = ({ dimension }: CacheGroup): readonly TotalsBy[] =>
  dimension === "label" ? ["labels"] : [dimension, "labels"];

/**
 * Returns the labels by which the sums of changed requests are queried. A query has one label, so
 * the sums of a query that has a label are read whole.
 */
export const changeLabels = ({ label }: Pick<LedgerQuery, "label">): readonly string[] =>
  label === undefined
    ? PROMPT_SECTIONS.map((section) => `${PROMPT_SECTION_LABEL}=${section}`)
    : [label];

/** Returns the changes of each group that has any, by its name. */
export function summarizeChanges(
  rows: readonly Pick<LedgerTotal, "by" | "calls">[],
  { dimension, prefix = "" }: CacheGroup,
): ReadonlyMap<string, PromptChanges> {
  const groups = new Map<string, Map<string, number>>();
  for (const { by, calls } of rows) {
    const labels = JSON.parse(by["labels"] ?? "{}") as Readonly<Record<string, string>>;
    const section = labels[PROMPT_SECTION_LABEL];
    const name = dimension === "label" ? labels[prefix.slice(0, -1)] : by[dimension];
    if (section === undefined || name === undefined) continue;
    const place = labels[PROMPT_PLACE_LABEL] ?? section;
    let places = groups.get(name);
    if (!places) groups.set(name, (places = new Map()));
    places.set(place, (places.get(place) ?? 0) + calls);
  }
  return new Map([...groups].map(([name, places]) => [name, rankPlaces(places)]));
}

function rankPlaces(places: ReadonlyMap<string, number>): PromptChanges {
  const all = [...places].map(([place, calls]): PromptDifference => ({ place, calls }));
  return {
    changed: all.reduce((sum, { calls }) => sum + calls, 0),
    differences: all
      .toSorted((a, b) => b.calls - a.calls || (a.place < b.place ? -1 : 1))
      .slice(0, MAX_DIFFERENCES),
  };
}

/** Changes of a group without any. */
export const NO_CHANGES: PromptChanges = { changed: 0, differences: [] };

const writtenTokens = (usage: Usage): number =>
  (usage.cache_write_5m ?? 0) +
  (usage.cache_write_30m ?? 0) +
  (usage.cache_write_1h ?? 0) +
  (usage.cache_write_12h ?? 0);
