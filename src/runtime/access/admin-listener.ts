// Opens the admin listener on its own address or Unix socket. It has the same guard as the public
// port and allows fewer connections. Only the primary process opens it.
import type { RequestListener } from "node:http";
import type { AdminConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { listen, type ListenerHandle, type ListenOptions } from "../http/listener.ts";

/** Maximum number of connections. Only a few programs of operators connect. */
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
   * A descriptor that was already open when the process started. Overrides the configured address.
   */
  readonly fd?: number | undefined;
  readonly log: Log;
}

export async function listenAdmin(
  { address: at, hosts, tls: files }: AdminConfig,
  { handler, onRejected, fd, log }: AdminListenerOptions,
): Promise<ListenerHandle> {
  const tls = files && { ...files, minVersion: "TLSv1.2" as const, clientCertificates: undefined };
  const { loadTlsSettings, watchCertificate } = tls ? await import("../http/tls.ts") : NO_TLS;
  const listening = await listen({
    ...("socket" in at
      ? {
          host: "localhost",
          port: 0,
          socket: { path: at.socket, mode: "0600", key: "admin.socket" },
        }
      : at),
    key: "--admin-port or admin.port",
    fd,
    tls: tls && (await loadTlsSettings!(tls, TLS_CONFIG_KEY)),
    hosts,
    isAdmin: true,
    limits: {
      connections: MAX_CONNECTIONS,
      connectionsPerAddress: MAX_CONNECTIONS,
      closeGraceMs: CLOSE_GRACE_MS,
    },
    handler,
    onRejected,
  });
  if (tls) watchCertificate!(listening.server, tls, { key: TLS_CONFIG_KEY, log });
  return listening;
}

const TLS_CONFIG_KEY = "admin.tls";
const NO_TLS = { loadTlsSettings: undefined, watchCertificate: undefined };
