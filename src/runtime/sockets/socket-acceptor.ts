// Accepts WebSockets with the gateway's bounds. Compression is off: the memory of a compressor for
// each of thousands of sockets is larger than what it saves, and a small message may expand.
import { WebSocketServer } from "ws";
import { BOUNDS } from "../../lib/bounds.ts";

/** Time in milliseconds in which a client must answer a close frame. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Creates an acceptor, which holds no connections. */
export function createAcceptor(
  maxMessageBytes: number,
  subprotocols: readonly string[],
): WebSocketServer {
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // Pings are answered only to a client that reads the answers.
    autoPong: false,
    maxPayload: maxMessageBytes,
    maxFragments: BOUNDS.socketFragments.max,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offered: ReadonlySet<string>) =>
      [...offered].find((name) => subprotocols.includes(name)) ?? false,
  };
  return new WebSocketServer(options);
}
