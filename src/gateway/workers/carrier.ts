// Batches of several processes on their way to one store, as one transaction: what came while the last one was being
// made durable goes together. A process that asked for what cannot be is refused alone.
import { Batches, turn } from "../../lib/batches.ts";
import { faultOf } from "../../model/error.ts";
import type { StoreCommand, Store, Verdict } from "../../plugin/store.ts";

interface Waiting {
  readonly batch: readonly StoreCommand[];
  resolve(verdicts: readonly Verdict[]): void;
  reject(error: unknown): void;
}

export function carrying(store: Pick<Store, "apply">): Store["apply"] {
  let queue: Waiting[] = [];
  const batches = new Batches(
    () => queue.length === 0,
    async () => {
      await turn();
      const load = queue;
      queue = [];
      await deliver(load);
    },
  );

  async function deliver(load: readonly Waiting[]): Promise<void> {
    const [first, ...more] = load;
    const batch = more.length === 0 ? first!.batch : load.flatMap((each) => each.batch);
    try {
      const verdicts = await store.apply(batch);
      let at = 0;
      for (const each of load) each.resolve(verdicts.slice(at, (at += each.batch.length)));
    } catch (error) {
      // Nothing of it happened. A command that cannot be obeyed is refused to its own process alone.
      if (more.length > 0 && faultOf(error)?.kind === "invalid")
        for (const each of load) await deliver([each]);
      else for (const each of load) each.reject(error);
    }
  }

  return (batch) =>
    new Promise((resolve, reject) => {
      queue.push({ batch, resolve, reject });
      batches.wake();
    });
}
