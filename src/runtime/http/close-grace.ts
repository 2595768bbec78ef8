// Closes connections gracefully. Data that has arrived is read first, and a client that is about to
// send a request gets a moment to do so.
import type { Socket } from "node:net";

/**
 * Calls `then` after all data that has arrived by now was read: the event loop has polled every
 * socket again.
 */
export const afterPendingReads = (then: () => void): void =>
  void setImmediate(() => setImmediate(then));

/** Closes the socket after `withinMs` if it is idle then. */
export function closeUnlessActive(socket: Socket, withinMs: number, isIdle: () => boolean): void {
  const timer = setTimeout(() => afterPendingReads(() => isIdle() && socket.destroy()), withinMs);
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Waits until the accept queue is empty, because closing the port would cut off connections in it.
 * The event loop accepts only a few of them per turn.
 * @param acceptedCount Returns how many connections were accepted so far.
 */
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
