// Whether a body still comes in and an answer still goes out. Time is counted in sweeps and not by the clock: while the process
// stood, or the machine slept, there were no sweeps, and no client was slow.
import type { Socket } from "node:net";

export class TransferRate {
  #windowStart = 0;
  #sweepsInWindow = 0;

  /** Nothing is expected to move now. */
  reset(): void {
    this.#sweepsInWindow = 0;
  }

  /** How far it has come in a window of so many sweeps; undefined while the window lasts. */
  sample(at: number, sweeps: number): number | undefined {
    if (this.#sweepsInWindow === 0) this.#windowStart = at;
    if (this.#sweepsInWindow++ < sweeps) return undefined;
    this.#sweepsInWindow = 0;
    return at - this.#windowStart;
  }
}

/** A body that came so far is slow when this is all that a window brought: at that pace it would outlast the time for a whole one. */
export const isTooSlow = (moved: number, came: number, windows: number): boolean =>
  moved === 0 || moved < came / windows - MIN_RATED_BYTES;

/** Bodies smaller than this have no pace to keep. */
const MIN_RATED_BYTES = 4 * 1024;

/** An answer of which so much waits is not being read when a window took no more of it. */
export const isStalled = (moved: number, waiting: number): boolean =>
  moved < Math.min(waiting, Math.max(MIN_SENT_PER_WINDOW, waiting / MIN_SENT_SHARE));

const MIN_SENT_PER_WINDOW = 16 * 1024;
const MIN_SENT_SHARE = 16;

/**
 * Bytes that have left the process. Node itself counts a write as a whole, and a large answer is one write: how much of it
 * the system has taken only the handle knows, which Node's own timeouts ask as well.
 */
export function bytesSentBy(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number };
  };
  return handle
    ? handle.bytesWritten - handle.writeQueueSize
    : socket.bytesWritten - socket.writableLength;
}
