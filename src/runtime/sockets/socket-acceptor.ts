// Accepts WebSockets with the gateway's limits. Compression is off: compressors for thousands of
// sockets need more memory than compression saves, and a small message may expand.
import { WebSocketServer } from "ws";
import { BOUNDS } from "../../lib/bounds.ts";

/** Time in milliseconds within which a client must answer a close frame. */
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
    // Pings are answered only if the client reads the answers.
    autoPong: false,
    maxPayload: maxMessageBytes,
    maxFragments: BOUNDS.socketFragments.max,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offered: ReadonlySet<string>) =>
      [...offered].find((name) => subprotocols.includes(name)) ?? false,
  };
  return new WebSocketServer(options);
}
