// Batches of several processes on their way to one store, as one transaction: what came while the last one was being
// made durable goes together. A process that asked for what cannot be is refused alone.
import { BatchLoop, afterPendingIo } from "../../lib/batch-loop.ts";
import { getFault } from "../../model/error.ts";
import type { StoreCommand, Store, CommandResult } from "../../plugin/store/store.ts";

interface WaitingBatch {
  readonly batch: readonly StoreCommand[];
  resolve(verdicts: readonly CommandResult[]): void;
  reject(error: unknown): void;
}

export function createBatchForwarder(store: Pick<Store, "apply">): Store["apply"] {
  let queue: WaitingBatch[] = [];
  const batches = new BatchLoop(
    () => queue.length === 0,
    async () => {
      await afterPendingIo();
      const load = queue;
      queue = [];
      await deliver(load);
    },
  );

  async function deliver(load: readonly WaitingBatch[]): Promise<void> {
    const [first, ...more] = load;
    const batch = more.length === 0 ? first!.batch : load.flatMap((each) => each.batch);
    try {
      const verdicts = await store.apply(batch);
      let at = 0;
      for (const each of load) each.resolve(verdicts.slice(at, (at += each.batch.length)));
    } catch (error) {
      // Nothing of it happened. A command that cannot be obeyed is refused to its own process alone.
      if (more.length > 0 && getFault(error)?.kind === "invalid")
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
