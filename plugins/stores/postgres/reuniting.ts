// The database is back: what this node has done alone is told, while new calls are still decided here, until there is none that the database does
// not know.
import type { InstanceFacts } from "tollgate/plugin";
import type { Outage } from "./apart.ts";
import type { Ask } from "./line.ts";
import { tellAgain } from "./ring.ts";
import type { ThisNode } from "./this-node.ts";

/** Says how many commands were told. */
export async function reunited(
  ask: Ask,
  node: ThisNode,
  outage: Outage,
  about: InstanceFacts | undefined,
): Promise<number> {
  // It was taken for dead meanwhile, mostly: it goes on under another number, and what the database has lost is told under that one, too.
  if (!(await node.goesOn(ask, about))) {
    await node.join(ask, node.writing().instance, about);
    // A key that was revoked meanwhile is refused from the first call on that the database decides.
    await node.lives(ask);
  }
  for (;;) {
    const batch = outage.first;
    if (batch) {
      await tellAgain(batch, (facts) => node.again(ask, facts));
      outage.told(batch);
    } else if (outage.deciding) await outage.deciding;
    // Nothing may come in between: what is decided after this goes to the database.
    else return outage.end();
  }
}
