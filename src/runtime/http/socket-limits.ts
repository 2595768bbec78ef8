// How long, how much and how many of it each socket may.
import type { ConnectionLimits } from "./connection-counter.ts";

export interface SocketLimits extends ConnectionLimits {
  /** For a whole head, from the connection or from its first byte; also for a socket that says nothing at first. */
  readonly headTimeoutMs: number;
  /** For a whole request, body included. */
  readonly requestTimeoutMs: number;
  /** In so long a body that is read makes some way, or it is cut. */
  readonly minRateWindowMs: number;
  /** And an answer that is written. */
  readonly stalledWindowMs: number;
  readonly inFlightPerSocket: number;
  readonly requestsPerSocket: number;
  /** After an answer to a request whose body was not read: so long, and so many more bytes, may the client take to notice. */
  readonly lingerMs: number;
  readonly lingerBytes: number;
  /** At the end: so long may a client say nothing that has just come, or has just been told that it may ask again. */
  readonly closeGraceMs: number;
}
