// Before connections are closed at the end: what has arrived is read, and a client that is about to ask has a moment for its request.
import type { Socket } from "node:net";

/** All that had arrived by now has been read then: the loop has looked at every socket once more. */
export const afterLook = (then: () => void): void => void setImmediate(() => setImmediate(then));

/** One that is silent then is closed. */
export function awaitWord(socket: Socket, withinMs: number, silent: () => boolean): void {
  const timer = setTimeout(() => afterLook(() => silent() && socket.destroy()), withinMs);
  socket.once("close", () => clearTimeout(timer));
}
