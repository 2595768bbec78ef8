// Converts each address of `listen:` to a listen target.
import type { ListenConfig } from "../../config/sections/network-config.ts";
import type { ListenTarget } from "./listener.ts";
import { chooseAddress } from "./port-probe.ts";
import { removeStaleSocket } from "./unix-socket.ts";

/**
 * Actual location of a listener: an address and port, a path, or the number of an open descriptor.
 */
export type BoundAddress =
  | { readonly host: string; readonly port: number }
  | { readonly socket: string }
  | { readonly fd: number };

/**
 * Returns the listen target of a `listen:` entry.
 * @param bound An address that was reserved for several processes, or handed over.
 */
export async function toListenTarget(
  { host, port, hosts, origins, tls, socket, mode }: ListenConfig,
  bound?: BoundAddress,
): Promise<ListenTarget> {
  return {
    hosts,
    origins,
    // Web pages cannot send requests to a Unix socket. The proxy in front of it decides which host
    // names are valid.
    ...(socket === undefined ? { host, port } : { host: "", port: 0 }),
    ...(bound && "port" in bound && { address: bound.host, port: bound.port }),
    isShared: bound !== undefined,
    socket: socket === undefined ? undefined : { path: socket, mode: mode!, key: "listen.socket" },
    fd: bound && "fd" in bound ? bound.fd : undefined,
    // Loaded on demand, because most gateways have no certificate and the module takes time to load.
    tls: tls && (await (await import("./tls.ts")).loadTlsSettings(tls, "listen.tls")),
  };
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
  await removeStaleSocket({ path: socket, key: "listen.socket" });
  return { socket };
}
