// Merges batches of several processes into one transaction of the store. The transaction contains
// all batches that arrived while the previous one was committed. If a command is invalid, only the
// process that sent it receives the error.
import { BatchQueue } from "../../lib/queue/batch-queue.ts";
import { getFault } from "../../model/error.ts";
import type { StoreCommand, Store, CommandResult } from "../../plugin/store/store.ts";

interface WaitingBatch {
  readonly batch: readonly StoreCommand[];
  resolve(verdicts: readonly CommandResult[]): void;
  reject(error: unknown): void;
}

export function createBatchForwarder(store: Pick<Store, "apply">): Store["apply"] {
  const queue = new BatchQueue<WaitingBatch>({ delayMs: 0, deliver });

  async function deliver(load: readonly WaitingBatch[]): Promise<void> {
    const [first, ...more] = load;
    const batch = more.length === 0 ? first!.batch : load.flatMap((each) => each.batch);
    try {
      const verdicts = await store.apply(batch);
      let at = 0;
      for (const each of load) each.resolve(verdicts.slice(at, (at += each.batch.length)));
    } catch (error) {
      // No command of the batch was applied. The batches are repeated one by one, so that an
      // invalid command is rejected only to its own process.
      if (more.length > 0 && getFault(error)?.kind === "invalid")
        for (const each of load) await deliver([each]);
      else for (const each of load) each.reject(error);
    }
  }

  return (batch) =>
    new Promise((resolve, reject) => {
      queue.push({ batch, resolve, reject });
    });
}
