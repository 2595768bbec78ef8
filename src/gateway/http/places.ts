// How each address of `listen:` is opened: by listhen, over TLS, as a unix socket, together with other processes, or as a socket that was
// open before we came.
import { createServer, type RequestListener, type Server } from "node:http";
import type { ListenConfig, ListenTls } from "../../config/lines.ts";
import type { ListenPlace } from "./listener.ts";
import { choose, inherit, share } from "./port.ts";
import { clearSocket, openSocket } from "./unix-socket.ts";

/** Where a listener really is: an address and a free port, a path, or the number of a descriptor that is open already. */
export type BoundPlace =
  | { readonly host: string; readonly port: number }
  | { readonly socket: string }
  | { readonly fd: number };

/** `bound`: chosen before, for several processes, or handed over. */
export async function placeOf(listen: ListenConfig, bound?: BoundPlace): Promise<ListenPlace> {
  const { hosts, origins, tls, socket, mode } = listen;
  const make = tls ? await securely(tls) : (handler: RequestListener) => createServer(handler);
  const guarded = {
    hosts,
    origins,
    secure: tls !== undefined,
    ...(socket !== undefined && { socket }),
  };
  if (bound && "fd" in bound)
    return {
      ...guarded,
      host: listen.host,
      port: 0,
      open: (_at, handler) => inherit(make(handler), bound.fd),
    };
  if (socket !== undefined) {
    const at = { path: socket, mode: mode!, key: "listen.socket" };
    return {
      ...guarded,
      // Pages do not reach a socket: what stands before it says which names are its.
      host: "",
      port: 0,
      async open(_at, handler) {
        if (!bound) await clearSocket(socket, at.key);
        return openSocket(make(handler), at);
      },
    };
  }
  const place = { ...guarded, host: listen.host, port: listen.port };
  // listhen cannot take another certificate while it serves, nor be one of several processes.
  if (!bound && !tls) return place;
  const at = bound && "port" in bound ? bound : listen;
  return { ...place, open: (_at, handler) => share(at, handler, "--port", make) };
}

/** Most gateways have no certificate, and the module takes time to load. */
async function securely(tls: ListenTls): Promise<(handler: RequestListener) => Server> {
  const { contextOf, secured } = await import("./tls.ts");
  const context = await contextOf(tls, "listen.tls");
  return (handler) => secured(context, tls.clients, handler);
}

/** What this process settles for all: an address and a free number, a path that nothing stands in the way of, or a descriptor of ours. */
export async function chosenPlace(
  listen: ListenConfig,
  fd: number | undefined,
): Promise<BoundPlace> {
  if (fd !== undefined) return { fd };
  const { socket, host, port } = listen;
  if (socket === undefined) return choose(host, port);
  await clearSocket(socket, "listen.socket");
  return { socket };
}
