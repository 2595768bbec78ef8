// What is known of one open socket.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Pace } from "./pace.ts";

export interface Held {
  readonly socket: Socket;
  /** A socket that is closed does not know it any more. */
  readonly address: string;
  /** When the head that we wait for began; undefined between requests. */
  headSince: number | undefined;
  /** `bytesRead` when the socket fell quiet: more means that a head has begun. */
  quietAt: number;
  /** Sweeps since then. */
  quietFor: number;
  inFlight: number;
  requests: number;
  /** The latest request with a body, and when its head was complete. */
  receiving: IncomingMessage | undefined;
  receivingSince: number;
  /** `bytesRead` at its head. */
  receivingFrom: number;
  readonly came: Pace;
  readonly left: Pace;
  latest: ServerResponse | undefined;
  /** Nothing that still comes in here is answered. */
  over: boolean;
  /** Something came in that will not be read. */
  unread: boolean;
}

export const heldOf = (socket: Socket, now: number): Held => ({
  socket,
  address: socket.remoteAddress ?? "",
  headSince: now,
  quietAt: 0,
  quietFor: 0,
  inFlight: 0,
  requests: 0,
  receiving: undefined,
  receivingSince: 0,
  receivingFrom: 0,
  came: new Pace(),
  left: new Pace(),
  latest: undefined,
  over: false,
  unread: false,
});

/** No request, nor the beginning of one. */
export const isSilent = ({ socket, inFlight, receiving, quietAt }: Held): boolean =>
  inFlight === 0 && (receiving?.complete ?? true) && socket.bytesRead === quietAt;
