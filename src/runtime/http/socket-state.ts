// State of one open socket.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TransferRate } from "./transfer-rate.ts";

export interface SocketState {
  readonly socket: Socket;
  /** Kept here because a closed socket no longer has its address. */
  readonly address: string;
  /** When the awaited head began. Undefined between requests. */
  headSince: number | undefined;
  /** `bytesRead` when the socket became idle. A higher count means that a head has begun. */
  idleBytesRead: number;
  /** Sweeps since the socket became idle. */
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

/** Whether there is no open request and no partial one. */
export const isIdle = ({ socket, inFlight, receiving, idleBytesRead }: SocketState): boolean =>
  inFlight === 0 && (receiving?.complete ?? true) && socket.bytesRead === idleBytesRead;
