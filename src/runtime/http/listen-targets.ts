// Selects how each address of `listen:` is opened: with listhen, over TLS, as a Unix socket, shared
// with other processes, or as an inherited socket.
import { createServer, type RequestListener, type Server } from "node:http";
import type { ListenConfig, ListenTls } from "../../config/sections/network-config.ts";
import type { ListenTarget } from "./listener.ts";
import { chooseAddress, listenInherited, listenShared } from "./port-binding.ts";
import { removeStaleSocket, listenOnSocket } from "./unix-socket.ts";

/**
 * Actual location of a listener: an address and port, a path, or the number of an open descriptor.
 */
export type BoundAddress =
  | { readonly host: string; readonly port: number }
  | { readonly socket: string }
  | { readonly fd: number };

/**
 * Returns the listen target of a `listen:` entry.
 * @param boundAddress An address that was reserved for several processes, or handed over.
 */
export async function toListenTarget(
  listen: ListenConfig,
  boundAddress?: BoundAddress,
): Promise<ListenTarget> {
  const { hosts, origins, tls, socket, mode } = listen;
  const make = tls
    ? await createTlsServerFactory(tls)
    : (handler: RequestListener) => createServer(handler);
  const guarded = {
    hosts,
    origins,
    isTls: tls !== undefined,
    ...(socket !== undefined && { socket }),
  };
  if (boundAddress && "fd" in boundAddress)
    return {
      ...guarded,
      host: listen.host,
      port: 0,
      open: (_at, handler) => listenInherited(make(handler), boundAddress.fd),
    };
  if (socket !== undefined) {
    const at = { path: socket, mode: mode!, key: "listen.socket" };
    return {
      ...guarded,
      // Web pages cannot reach a Unix socket. The proxy in front of it decides which host names are
      // valid.
      host: "",
      port: 0,
      async open(_at, handler) {
        if (!boundAddress) await removeStaleSocket(socket, at.key);
        return listenOnSocket(make(handler), at);
      },
    };
  }
  const place = { ...guarded, host: listen.host, port: listen.port };
  // listhen cannot change its certificate while it serves, and cannot share a port between
  // processes.
  if (!boundAddress && !tls) return place;
  const at = boundAddress && "port" in boundAddress ? boundAddress : listen;
  return { ...place, open: (_at, handler) => listenShared(at, handler, "--port", make) };
}

/**
 * Loads the TLS module on demand, because most gateways have no certificate and the module takes
 * time to load.
 */
async function createTlsServerFactory(
  tls: ListenTls,
): Promise<(handler: RequestListener) => Server> {
  const { loadTlsContext, createTlsServer } = await import("./tls.ts");
  const context = await loadTlsContext(tls, "listen.tls");
  return (handler) => createTlsServer(context, tls.clientCertificates, handler);
}

/**
 * Reserves an address for all worker processes: an address with a free port, an unused socket path,
 * or an open descriptor.
 */
export async function reserveAddress(
  listen: ListenConfig,
  fd: number | undefined,
): Promise<BoundAddress> {
  if (fd !== undefined) return { fd };
  const { socket, host, port } = listen;
  if (socket === undefined) return chooseAddress(host, port);
  await removeStaleSocket(socket, "listen.socket");
  return { socket };
}
