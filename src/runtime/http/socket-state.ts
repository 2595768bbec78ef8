// State of one open socket.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ConnectionLimits } from "./connection-counter.ts";

export interface SocketState {
  readonly socket: Socket;
  /** The address is stored here because a closed socket no longer has it. */
  readonly address: string;
  /** Time at which the head of the next request began. Undefined between requests. */
  headSince: number | undefined;
  /** `bytesRead` when the socket became idle. A higher count means that a head has begun. */
  idleBytesRead: number;
  /** Number of sweeps since the socket became idle. */
  idleSweeps: number;
  inFlight: number;
  requestCount: number;
  /** The latest request with a body. `receivingSince` is when its head was complete. */
  receiving: IncomingMessage | undefined;
  receivingSince: number;
  /** `bytesRead` when its head was complete. */
  receivingStartBytes: number;
  readonly receiveRate: TransferRate;
  readonly sendRate: TransferRate;
  latestResponse: ServerResponse | undefined;
  /** Whether further requests on this socket are ignored. */
  isClosing: boolean;
  /** Whether data arrived that will not be read. */
  hasUnreadInput: boolean;
}

export const createSocketState = (socket: Socket, now: number): SocketState => ({
  socket,
  address: socket.remoteAddress ?? "",
  headSince: now,
  idleBytesRead: 0,
  idleSweeps: 0,
  inFlight: 0,
  requestCount: 0,
  receiving: undefined,
  receivingSince: 0,
  receivingStartBytes: 0,
  receiveRate: new TransferRate(),
  sendRate: new TransferRate(),
  latestResponse: undefined,
  isClosing: false,
  hasUnreadInput: false,
});

/** Whether there is no open request and no partially received request. */
export const isIdle = ({ socket, inFlight, receiving, idleBytesRead }: SocketState): boolean =>
  inFlight === 0 && (receiving?.complete ?? true) && socket.bytesRead === idleBytesRead;

// Limits of each socket: times, rates, and counts.

export interface SocketLimits extends ConnectionLimits {
  /**
   * Time for a complete request head, from the connection or its first byte, in milliseconds.
   * Applies to a new, silent socket too.
   */
  readonly headTimeoutMs: number;
  /** Time for a complete request, body included, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Time in milliseconds within which a body must make progress while it is read. */
  readonly minRateWindowMs: number;
  /** Time in milliseconds within which the client must read part of a pending response. */
  readonly stalledWindowMs: number;
  readonly inFlightPerSocket: number;
  readonly requestsPerSocket: number;
  /**
   * How long the socket stays open after a response to a request with an unread body, in
   * milliseconds, so that the client notices the response. `lingerBytes` limits the bytes that it
   * may still send.
   */
  readonly lingerMs: number;
  readonly lingerBytes: number;
  /**
   * During shutdown, how long a new client, or one that was just allowed to send another request,
   * may stay silent, in milliseconds.
   */
  readonly closeGraceMs: number;
}

// Measures whether a body still arrives and a response is still read. Time is counted in sweeps
// instead of clock time: a suspended process or machine runs no sweeps, so clients do not count as
// slow after it resumes.

class TransferRate {
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
 * Returns the number of bytes that have left the process. Node counts each write completely when it
 * starts, and a large response is one write. Only the handle reports the number of written bytes
 * that the system has accepted. Node's own timeouts also read this value.
 */
export function bytesSentBy(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number };
  };
  return handle
    ? handle.bytesWritten - handle.writeQueueSize
    : socket.bytesWritten - socket.writableLength;
}
