// Finds keys by what an operator calls them.
import { fail } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";

/** Finds a key by its ID, or by its name if only one key has it. The newest comes first: a rotated key has two records for a while. */
export function findKeyVersions(
  keys: readonly KeyRecord[],
  id: string,
): [KeyRecord, ...KeyRecord[]] {
  const named = keys.filter((key) => key.name === id);
  const same = keys.filter((key) => key.id === id);
  const meant = same.length > 0 ? same : named;
  if (new Set(meant.map((key) => key.id)).size > 1)
    fail(
      "invalid",
      `Several keys are named "${id}": say the id. ${named.map((key) => key.id).join(", ")}`,
    );
  const [first, ...rest] = meant.sort((a, b) => b.created - a.created);
  return first
    ? [first, ...rest]
    : fail("not_found", `There is no key "${id}".`, { code: "no_such_key" });
}
