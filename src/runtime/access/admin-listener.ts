// Opens the admin listener on its own address or Unix socket. It has the same guard as the public
// port and allows fewer connections. Only the primary process opens it.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AdminConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { listen, type ListenerHandle, type ListenOptions } from "../http/listener.ts";
import { listenInherited, listenShared } from "../http/port-binding.ts";
import { removeStaleSocket, listenOnSocket } from "../http/unix-socket.ts";

/** Maximum connections. Few operator programs connect. */
const MAX_CONNECTIONS = 256;
/**
 * How long open connections may finish, in milliseconds. During a hot restart, clients wait until
 * this listener is closed.
 */
const CLOSE_GRACE_MS = 100;

interface AdminListenerOptions {
  readonly handler: RequestListener;
  readonly onRejected: NonNullable<ListenOptions["onRejected"]>;
  /**
   * Descriptor that was already open when the process started. Overrides the configured address.
   */
  readonly fd?: number | undefined;
  readonly log: Log;
}

export async function listenAdmin(
  { address: at, hosts, tls: files }: AdminConfig,
  { handler, onRejected, fd, log }: AdminListenerOptions,
): Promise<ListenerHandle> {
  const limits = {
    connections: MAX_CONNECTIONS,
    connectionsPerAddress: MAX_CONNECTIONS,
    closeGraceMs: CLOSE_GRACE_MS,
  };
  const guarded = { hosts, limits, handler, onRejected, isAdmin: true } as const;
  const tls = files && { ...files, minVersion: "TLSv1.2" as const, clientCertificates: undefined };
  const { loadTlsContext, watchCertificate, createTlsServer } = tls
    ? await import("../http/tls.ts")
    : NO_TLS;
  const context = tls && (await loadTlsContext!(tls, TLS_CONFIG_KEY));
  const make = (through: RequestListener): Server =>
    context ? createTlsServer!(context, undefined, through) : createServer(through);
  const address = "socket" in at ? { host: "localhost", port: 0 } : at;
  const listening = await listen({
    ...guarded,
    ...address,
    isTls: tls !== undefined,
    ...("socket" in at && { socket: at.socket }),
    async open(of, through) {
      if (fd !== undefined) return listenInherited(make(through), fd);
      if (!("socket" in at)) return listenShared(of, through, "--admin-port or admin.port", make);
      await removeStaleSocket(at.socket, "admin.socket");
      return listenOnSocket(make(through), { path: at.socket, mode: "0600", key: "admin.socket" });
    },
  });
  if (tls) watchCertificate!(listening.server, tls, { key: TLS_CONFIG_KEY, log });
  return listening;
}

const TLS_CONFIG_KEY = "admin.tls";
const NO_TLS = {
  loadTlsContext: undefined,
  watchCertificate: undefined,
  createTlsServer: undefined,
};
