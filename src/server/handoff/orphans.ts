// Finds calls that a gateway had open when it released the store and did not settle before it
// ended.
import type { LedgerEntry, Settle, Store } from "../../plugin/store/store.ts";
import { recoveredSettle } from "../../runtime/workers/open-reservations.ts";

const PAGE = 1_000;

/**
 * Returns settlements as recovery would write them. `since` and `until`: range of the calls' start
 * times.
 */
export async function listOrphanedCalls(
  store: Pick<Store, "listEntries">,
  { since, until, now }: { readonly since: number; readonly until: number; readonly now: number },
): Promise<readonly (Settle & { at: number })[]> {
  const open = new Map<string, LedgerEntry>();
  let after: string | undefined;
  do {
    const page = await store.listEntries({ from: since }, { limit: PAGE, ...(after && { after }) });
    for (const entry of page.items)
      if (entry.kind === "reserve" && entry.at <= until) open.set(entry.attempt, entry);
      else if (entry.kind === "settle") open.delete(entry.attempt);
    after = page.next;
  } while (after !== undefined);
  return [...open.values()].map((entry) =>
    recoveredSettle(
      entry.attempt,
      { holdNano: entry.holdNano ?? null, usage: {}, costNano: null },
      Math.max(now, entry.at),
    ),
  );
}
