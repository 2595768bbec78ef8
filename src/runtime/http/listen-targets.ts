// How each address of `listen:` is opened: by listhen, over TLS, as a unix socket, together with other processes, or as a socket that was
// open before we came.
import { createServer, type RequestListener, type Server } from "node:http";
import type { ListenConfig, ListenTls } from "../../config/sections/network-config.ts";
import type { ListenTarget } from "./listener.ts";
import { chooseAddress, listenInherited, listenShared } from "./port-binding.ts";
import { removeStaleSocket, listenOnSocket } from "./unix-socket.ts";

/** Where a listener really is: an address and a free port, a path, or the number of a descriptor that is open already. */
export type BoundAddress =
  | { readonly host: string; readonly port: number }
  | { readonly socket: string }
  | { readonly fd: number };

/** `bound`: chosen before, for several processes, or handed over. */
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
      // Pages do not reach a socket: what stands before it says which names are its.
      host: "",
      port: 0,
      async open(_at, handler) {
        if (!boundAddress) await removeStaleSocket(socket, at.key);
        return listenOnSocket(make(handler), at);
      },
    };
  }
  const place = { ...guarded, host: listen.host, port: listen.port };
  // listhen cannot take another certificate while it serves, nor be one of several processes.
  if (!boundAddress && !tls) return place;
  const at = boundAddress && "port" in boundAddress ? boundAddress : listen;
  return { ...place, open: (_at, handler) => listenShared(at, handler, "--port", make) };
}

/** Most gateways have no certificate, and the module takes time to load. */
async function createTlsServerFactory(
  tls: ListenTls,
): Promise<(handler: RequestListener) => Server> {
  const { loadTlsContext, createTlsServer } = await import("./tls.ts");
  const context = await loadTlsContext(tls, "listen.tls");
  return (handler) => createTlsServer(context, tls.clientCertificates, handler);
}

/** What this process settles for all: an address and a free number, a path that nothing stands in the way of, or a descriptor of ours. */
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
