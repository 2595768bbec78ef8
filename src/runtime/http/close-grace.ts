// Before connections are closed at the end: what has arrived is read, and a client that is about to ask has a moment for its request.
import type { Socket } from "node:net";

/** All that had arrived by now has been read then: the loop has looked at every socket once more. */
export const afterPendingReads = (then: () => void): void =>
  void setImmediate(() => setImmediate(then));

/** One that is silent then is closed. */
export function closeUnlessActive(socket: Socket, withinMs: number, isIdle: () => boolean): void {
  const timer = setTimeout(() => afterPendingReads(() => isIdle() && socket.destroy()), withinMs);
  socket.once("close", () => clearTimeout(timer));
}

/** Connections that wait to be taken would be cut off with the port; the loop takes few of them in one turn. `taken`: how many have been. */
export async function drainAcceptQueue(
  acceptedCount: () => number,
  withinMs: number,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (let before = -1; acceptedCount() > before && performance.now() < deadline;) {
    before = acceptedCount();
    await new Promise<void>(afterPendingReads);
  }
}
