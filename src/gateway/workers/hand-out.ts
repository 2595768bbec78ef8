// At the end of all workers: with the last of them Node's cluster closes the connections that it has taken and that no worker has yet. So it takes
// no more, and hands out what it has, before any of them is told to end.
import { setTimeout as sleep } from "node:timers/promises";
import { afterLook } from "../http/last-look.ts";
import type { Member } from "./worker-handle.ts";

/** A worker that takes none for so long will take none. */
const LATE_MS = 5_000;
const EVERY_MS = 5;

/** `shut` ends the taking. While a connection waits for a worker each of them has one on its way. */
export async function handOut(
  members: Iterable<Pick<Member, "handed">>,
  shut: () => void,
): Promise<void> {
  await new Promise<void>(afterLook);
  shut();
  const late = performance.now() + LATE_MS;
  while ([...members].some((member) => member.handed() > 0) && performance.now() < late)
    await sleep(EVERY_MS);
}
