// At the end of all workers: with the last of them Node's cluster closes the connections that it has taken and that no worker has yet. So it takes
// no more, and hands out what it has, before any of them is told to end.
import { setTimeout as sleep } from "node:timers/promises";
import { afterPendingReads } from "../http/close-grace.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** A worker that takes none for so long will take none. */
const TIMEOUT_MS = 5_000;
const POLL_MS = 5;

/** `shut` ends the taking. While a connection waits for a worker each of them has one on its way. */
export async function drainAcceptQueue(
  workers: Iterable<Pick<WorkerHandle, "pendingConnections">>,
  stopAccepting: () => void,
): Promise<void> {
  await new Promise<void>(afterPendingReads);
  stopAccepting();
  const deadline = performance.now() + TIMEOUT_MS;
  while (
    [...workers].some((member) => member.pendingConnections() > 0) &&
    performance.now() < deadline
  )
    await sleep(POLL_MS);
}
