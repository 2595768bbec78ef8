// Batches of several processes on their way to one store, as one transaction: what came while the last one was being
// made durable goes together. One in flight, nothing lingers. Whoever asked for what cannot be is told so alone.
import { faultOf } from "../../model/error.ts";
import type { StoreCommand, Store, Verdict } from "../../plugin/store.ts";

interface Waiting {
  readonly batch: readonly StoreCommand[];
  resolve(verdicts: readonly Verdict[]): void;
  reject(error: unknown): void;
}

/** What all workers that are ready now ask for goes together; when there is one, this takes no time. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function carrying(store: Pick<Store, "apply">): Store["apply"] {
  let queue: Waiting[] = [];
  let carrying = false;

  async function carry(): Promise<void> {
    if (carrying) return;
    carrying = true;
    while (queue.length > 0) {
      await turn();
      const load = queue;
      queue = [];
      await deliver(load);
    }
    carrying = false;
  }

  async function deliver(load: readonly Waiting[]): Promise<void> {
    const [first, ...more] = load;
    const batch = more.length === 0 ? first!.batch : load.flatMap((each) => each.batch);
    try {
      const verdicts = await store.apply(batch);
      let at = 0;
      for (const each of load) each.resolve(verdicts.slice(at, (at += each.batch.length)));
    } catch (error) {
      // Nothing of it happened. Somebody else's mistake is nobody's trouble.
      if (more.length > 0 && faultOf(error)?.kind === "invalid")
        for (const each of load) await deliver([each]);
      else for (const each of load) each.reject(error);
    }
  }

  return (batch) =>
    new Promise((resolve, reject) => {
      queue.push({ batch, resolve, reject });
      void carry();
    });
}
