// Some readers put the lists of a stream together by the place that each entry names, and raise where it names none.
import type { Json, JsonObject } from "../../../plugin/index.ts";
import { asObject } from "../../json-values.ts";

/** Gives each entry of a delta's lists its place among all that were told under that name. */
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
