// Limits of each socket: times, rates, and counts.
import type { ConnectionLimits } from "./connection-counter.ts";

export interface SocketLimits extends ConnectionLimits {
  /**
   * Time for a complete request head, from the connection or its first byte, in milliseconds.
   * Applies to a new, silent socket too.
   */
  readonly headTimeoutMs: number;
  /** Time for a complete request, body included, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Window in which a body must make progress while it is read, in milliseconds. */
  readonly minRateWindowMs: number;
  /** Window in which the client must read some of a pending response, in milliseconds. */
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
