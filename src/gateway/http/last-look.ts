// Before connections are closed at the end: what has arrived is read, and a client that has just come has a moment for its request.
import type { Socket } from "node:net";

/** A client that has connected is about to ask, or has connected for later only. */
const NEWCOMER_MS = 1_000;

/** All that had arrived by now has been read then: the loop has looked at every socket once more. */
export const afterLook = (then: () => void): void => void setImmediate(() => setImmediate(then));

/** One that has said nothing by then is closed. */
export function awaitNewcomer(socket: Socket, withinMs: number): void {
  const silent = () => socket.bytesRead === 0 && void socket.destroy();
  const timer = setTimeout(silent, Math.min(NEWCOMER_MS, withinMs));
  socket.once("close", () => clearTimeout(timer));
}
