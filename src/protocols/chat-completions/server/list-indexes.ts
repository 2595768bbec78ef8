// Numbers the list entries of a stream. Some clients assemble lists by the index of each entry, and
// throw if an entry has none.
import type { Json, JsonObject } from "../../../plugin/index.ts";
import { asObject } from "../../json-values.ts";

/**
 * Returns a function that numbers the entries of a delta's lists. Numbers continue across deltas
 * for each list name.
 */
export function createListIndexer(): (delta: JsonObject) => JsonObject {
  const counts = new Map<string, number>();
  const placed = (key: string, entries: readonly Json[]): Json[] => {
    const from = counts.get(key) ?? 0;
    counts.set(key, from + entries.length);
    return entries.map((entry, i) => {
      const fields = asObject(entry);
      return fields ? { ...fields, index: from + i } : entry;
    });
  };
  return (delta) =>
    Object.fromEntries(
      Object.entries(delta).map(([key, value]) => [
        key,
        Array.isArray(value) ? placed(key, value as readonly Json[]) : value,
      ]),
    );
}
