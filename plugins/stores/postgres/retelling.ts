// What a process before this one has left in the folder: told to a database that does not know of it, under a row of its own. What that process had
// open then is presumed, as of every node that is no more; and what it had set aside goes back, for now it is known what it has spent.
import type { InstanceFacts, StoreCommand, Verdict } from "tollgate/plugin";
import { join, leave } from "./beat.ts";
import type { Ask } from "./line.ts";
import { tellAgain } from "./ring.ts";
import { give } from "./slice-questions.ts";
import type { Left } from "./tape.ts";

type Exactly = (batch: readonly StoreCommand[]) => Promise<readonly Verdict[]>;

/** `as`: to write as that node. Says how many commands were told. */
export async function retell(
  ask: Ask,
  s: string,
  { instance, told, owed }: Left,
  { leaseMs, as }: { readonly leaseMs: number; readonly as: (epoch: number) => Exactly },
): Promise<number> {
  const rows = await ask({
    text: `SELECT epoch, n, about FROM ${s}.node WHERE id = $1 ORDER BY epoch`,
    values: [instance],
  });
  // One process has a folder: the one before it has ended, and is not to be waited for.
  await ask({
    text: `UPDATE ${s}.node SET state = 'dead' WHERE id = $1 AND state = 'live'`,
    values: [instance],
  });
  const known = new Map(rows.map(({ epoch, n }) => [Number(epoch), Number(n)]));
  const missing = told.filter(({ epoch, n }) => n > (known.get(epoch) ?? -1));
  const batches = [...missing.map(({ batch }) => batch), ...owed];
  if (batches.length > 0) {
    const about = rows.at(-1)?.["about"];
    const facts = typeof about === "string" ? (JSON.parse(about) as InstanceFacts) : undefined;
    const epoch = await join(ask, s, instance, facts, leaseMs);
    const exactly = as(epoch);
    for (const batch of batches) await tellAgain(batch, exactly);
    await leave(ask, s, epoch);
  }
  await give(ask, s, instance);
  return batches.reduce((sum, { length }) => sum + length, 0);
}
