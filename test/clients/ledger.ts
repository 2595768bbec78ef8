import type { JsonObject, Usage } from "tollgate/plugin";
import type { Daemon } from "../kit/process/daemon.ts";

/** A row of the ledger. */
export interface Entry {
  readonly kind: string;
  readonly state: string;
  readonly usage: Usage;
  readonly labels: JsonObject;
}

/** Returns all rows that settle a call, oldest first. */
export async function settled({ ask }: Pick<Daemon, "ask">): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  let after: string | undefined;
  do {
    const input = { limit: 500, ...(after !== undefined && { after }) };
    const page = (await ask("ledger.entries", input)) as unknown as {
      items: readonly Entry[];
      next?: string;
    };
    entries.push(...page.items.filter(({ kind }) => kind === "settle"));
    after = page.next;
  } while (after !== undefined);
  return entries;
}
