// The database is back: what this node has done alone is told, while new calls are still decided here, until there is none that the database does
// not know.
import { faultOf, type InstanceFacts } from "tollgate/plugin";
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
  if (!(await caughtUp(ask, node))) {
    await node.join(ask, node.writing().instance, about);
    // A key that was revoked meanwhile is refused from the first call on that the database decides.
    await node.lives(ask);
  }
  for (;;) {
    const batch = outage.first;
    if (batch) {
      await tellAgain(batch, (facts) => node.again(ask, facts));
      outage.told();
    } else if (outage.deciding) await outage.deciding;
    // Nothing may come in between: what is decided after this goes to the database.
    else return outage.end();
  }
}

/** False: the database knows nothing of this node any more, or takes it for dead. */
async function caughtUp(ask: Ask, node: ThisNode): Promise<boolean> {
  try {
    await node.catchUp(ask);
    return !node.lost && (await node.lives(ask)) !== false;
  } catch (error) {
    if (faultOf(error)?.code === "fenced") return false;
    throw error;
  }
}
