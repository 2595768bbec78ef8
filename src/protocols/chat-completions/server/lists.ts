// Some readers put the lists of a stream together by the place that each entry names, and raise where it names none.
import type { Json, JsonObject } from "../../../plugin/index.ts";
import { object } from "../../json.ts";

/** Gives each entry of a delta's lists its place among all that were told under that name. */
export function placing(): (delta: JsonObject) => JsonObject {
  const told = new Map<string, number>();
  const placed = (key: string, entries: readonly Json[]): Json[] => {
    const from = told.get(key) ?? 0;
    told.set(key, from + entries.length);
    return entries.map((entry, i) => {
      const fields = object(entry);
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
