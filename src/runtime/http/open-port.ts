// Opens every port of the gateway: client ports, the admin listener, Unix sockets, and the control
// socket. listhen opens the address of one process over plain HTTP. Node opens the others:
//
// - A port that workers share. listhen tests a port by opening it, so it would accept connections
//   that no worker answers.
// - TLS. listhen has no options for client certificates, TLS versions, and ciphers.
// - A Unix socket or an inherited descriptor. listhen opens only an address and a port number.
import { createServer, type RequestListener, type Server } from "node:http";
import { fail } from "../../model/error.ts";
import { toBindError } from "./port-probe.ts";
import type { TlsSettings } from "./tls.ts";
import { listenOnSocket, removeStaleSocket, type SocketAddress } from "./unix-socket.ts";

/** The address of a server. `fd` overrides `socket`, and `socket` overrides the port. */
export interface PortAddress {
  readonly host: string;
  /** Port number. `0` selects any free port. Any other port is used as it is, or opening fails. */
  readonly port: number;
  /** Address of `host`, if it is already resolved. */
  readonly address?: string | undefined;
  /** Option that sets the port, for error messages. Default: `--port`. */
  readonly key?: string | undefined;
  /** Whether several processes open this address. */
  readonly isShared?: boolean | undefined;
  readonly socket?: SocketAddress | undefined;
  /** Descriptor that a service manager or another process opened and handed over. */
  readonly fd?: number | undefined;
  readonly tls?: TlsSettings | undefined;
}

/** Opens the port, or fails with the reason. */
export async function openPort(at: PortAddress, handler: RequestListener): Promise<Server> {
  const { socket, fd, tls, isShared = false } = at;
  if (fd === undefined && !socket && !tls && !isShared) {
    const { listenWithListhen } = await import("./listhen-bind.ts");
    return listenWithListhen(at, handler);
  }
  const server = tls
    ? (await import("./tls.ts")).createTlsServer(tls, handler)
    : createServer(handler);
  if (fd !== undefined) return listenOnDescriptor(server, fd);
  if (!socket) return listenOnAddress(server, at);
  if (!isShared) await removeStaleSocket(socket);
  return listenOnSocket(server, socket);
}

/** The port is not tested first: see the table above. */
const listenOnAddress = (
  server: Server,
  { host, address = host, port, key }: PortAddress,
): Promise<Server> =>
  new Promise((resolve, reject) => {
    server.once("error", (error) => reject(toBindError(address, port, error, key)));
    server.listen({ host: address, port }, () => {
      server.removeAllListeners("error");
      resolve(server);
    });
  });

const listenOnDescriptor = (server: Server, fd: number): Promise<Server> =>
  new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      try {
        fail("conflict", `The inherited socket (${fd}) cannot be used: ${error.code}.`, {
          code: "listen_failed",
          cause: error,
        });
      } catch (fault) {
        reject(fault as Error);
      }
    });
    server.listen({ fd }, () => {
      server.removeAllListeners("error");
      resolve(server);
    });
  });
