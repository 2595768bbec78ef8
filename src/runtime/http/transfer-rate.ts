// Measures whether a body still arrives and a response is still read. Time is counted in sweeps
// instead of clock time: a suspended process or machine runs no sweeps, so clients do not count as
// slow after it resumes.
import type { Socket } from "node:net";

export class TransferRate {
  #windowStart = 0;
  #sweepsInWindow = 0;

  /** Starts a new window. Called while no data is expected. */
  reset(): void {
    this.#sweepsInWindow = 0;
  }

  /** Returns the progress in a window of `sweeps` sweeps, or undefined while the window lasts. */
  sample(at: number, sweeps: number): number | undefined {
    if (this.#sweepsInWindow === 0) this.#windowStart = at;
    if (this.#sweepsInWindow++ < sweeps) return undefined;
    this.#sweepsInWindow = 0;
    return at - this.#windowStart;
  }
}

/**
 * Whether a body is too slow: in the last window, no bytes arrived, or so few that at this rate the
 * body would exceed the time limit of the request.
 */
export const isTooSlow = (moved: number, came: number, windows: number): boolean =>
  moved === 0 || moved < came / windows - MIN_RATED_BYTES;

/** Bodies smaller than this, in bytes, have no minimum rate. */
const MIN_RATED_BYTES = 4 * 1024;

/**
 * Whether the client has stopped reading a response, given the bytes sent in the window and the
 * bytes that are waiting.
 */
export const isStalled = (moved: number, waiting: number): boolean =>
  moved < Math.min(waiting, Math.max(MIN_SENT_PER_WINDOW, waiting / MIN_SENT_SHARE));

const MIN_SENT_PER_WINDOW = 16 * 1024;
const MIN_SENT_SHARE = 16;

/**
 * Returns the bytes that have left the process. Node counts each write as a whole, and a large
 * response is one write. Only the handle knows how much of it the system has taken. Node's own
 * timeouts read it too.
 */
export function bytesSentBy(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number };
  };
  return handle
    ? handle.bytesWritten - handle.writeQueueSize
    : socket.bytesWritten - socket.writableLength;
}
