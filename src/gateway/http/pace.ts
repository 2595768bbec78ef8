// Whether a body still comes in and an answer still goes out. Time is counted in sweeps and not by the clock: while the process
// stood, or the machine slept, there were no sweeps, and no client was slow.
import type { Socket } from "node:net";

export class Pace {
  #at = 0;
  #sweeps = 0;

  /** Nothing is expected to move now. */
  rest(): void {
    this.#sweeps = 0;
  }

  /** How far it has come in a window of so many sweeps; undefined while the window lasts. */
  look(at: number, sweeps: number): number | undefined {
    if (this.#sweeps === 0) this.#at = at;
    if (this.#sweeps++ < sweeps) return undefined;
    this.#sweeps = 0;
    return at - this.#at;
  }
}

/** A body that came so far is slow when this is all that a window brought: at that pace it would outlast the time for a whole one. */
export const slow = (moved: number, came: number, windows: number): boolean =>
  moved === 0 || moved < came / windows - SLACK;

/** Bodies smaller than this have no pace to keep. */
const SLACK = 4 * 1024;

/** An answer of which so much waits is not being read when a window took no more of it. */
export const stuck = (moved: number, waiting: number): boolean =>
  moved < Math.min(waiting, Math.max(LEAST, waiting / SHARE));

const LEAST = 16 * 1024;
const SHARE = 16;

/**
 * Bytes that have left the process. Node itself counts a write as a whole, and a large answer is one write: how much of it
 * the system has taken only the handle knows, which Node's own timeouts ask as well.
 */
export function gone(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number };
  };
  return handle
    ? handle.bytesWritten - handle.writeQueueSize
    : socket.bytesWritten - socket.writableLength;
}
