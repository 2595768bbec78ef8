// The admin listener: an address of its own, or a unix socket, with the same guard as the public port and fewer connections. It
// stands in the primary alone.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AdminConfig } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import { listen, type Listening, type ListenOptions } from "../http/listener.ts";
import { inherit, share } from "../http/port.ts";
import { clearSocket, openSocket } from "../http/unix-socket.ts";

/** Of programs that operators run there are few. */
const CONNECTIONS = 256;
/** Where another process takes over, clients wait until this listener is closed. */
const LAST_MS = 100;

interface AdminListening {
  readonly handler: RequestListener;
  readonly refused: NonNullable<ListenOptions["refused"]>;
  /** A descriptor that was open before we came, in place of what the file says. */
  readonly fd?: number | undefined;
  readonly log: Log;
}

export async function listenAdmin(
  { at, hosts, tls: files }: AdminConfig,
  { handler, refused, fd, log }: AdminListening,
): Promise<Listening> {
  const limits = {
    connections: CONNECTIONS,
    connectionsPerAddress: CONNECTIONS,
    lastMs: LAST_MS,
  };
  const guarded = { hosts, limits, handler, refused, admin: true } as const;
  const tls = files && { ...files, minVersion: "TLSv1.2" as const, clients: undefined };
  const { contextOf, renewing, secured } = tls ? await import("../http/tls.ts") : NONE;
  const context = tls && (await contextOf!(tls, KEY));
  const make = (through: RequestListener): Server =>
    context ? secured!(context, undefined, through) : createServer(through);
  const address = "socket" in at ? { host: "localhost", port: 0 } : at;
  const listening = await listen({
    ...guarded,
    ...address,
    secure: tls !== undefined,
    ...("socket" in at && { socket: at.socket }),
    async open(of, through) {
      if (fd !== undefined) return inherit(make(through), fd);
      if (!("socket" in at)) return share(of, through, "--admin-port or admin.port", make);
      await clearSocket(at.socket, "admin.socket");
      return openSocket(make(through), { path: at.socket, mode: "0600", key: "admin.socket" });
    },
  });
  if (tls) renewing!(listening.server, tls, { key: KEY, log });
  return listening;
}

const KEY = "admin.tls";
const NONE = { contextOf: undefined, renewing: undefined, secured: undefined };
