// What is known of one open socket.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TransferRate } from "./transfer-rate.ts";

export interface SocketState {
  readonly socket: Socket;
  /** A socket that is closed does not know it any more. */
  readonly address: string;
  /** When the head that we wait for began; undefined between requests. */
  headSince: number | undefined;
  /** `bytesRead` when the socket fell quiet: more means that a head has begun. */
  idleBytesRead: number;
  /** Sweeps since then. */
  idleSweeps: number;
  inFlight: number;
  requestCount: number;
  /** The latest request with a body, and when its head was complete. */
  receiving: IncomingMessage | undefined;
  receivingSince: number;
  /** `bytesRead` at its head. */
  receivingStartBytes: number;
  readonly receiveRate: TransferRate;
  readonly sendRate: TransferRate;
  latestResponse: ServerResponse | undefined;
  /** Nothing that still comes in here is answered. */
  isClosing: boolean;
  /** Something came in that will not be read. */
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

/** No request, nor the beginning of one. */
export const isIdle = ({ socket, inFlight, receiving, idleBytesRead }: SocketState): boolean =>
  inFlight === 0 && (receiving?.complete ?? true) && socket.bytesRead === idleBytesRead;
