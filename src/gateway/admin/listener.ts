// The admin listener: an address of its own, or a unix socket, with the same guard as the public port and fewer connections. It
// stands in the primary alone.
import { lstat, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect } from "node:net";
import type { AdminConfig } from "../../config/types.ts";
import { fail } from "../../model/error.ts";
import { listen, type Listening, type ListenOptions } from "../http/listener.ts";
import { share } from "../http/port.ts";

/** Of programs that operators run there are few. */
const CONNECTIONS = 256;

export function listenAdmin(
  { at, hosts }: AdminConfig,
  handler: RequestListener,
  refused: NonNullable<ListenOptions["refused"]>,
): Promise<Listening> {
  const limits = { connections: CONNECTIONS, connectionsPerAddress: CONNECTIONS };
  const guarded = { hosts, limits, handler, refused, admin: true } as const;
  if ("socket" in at)
    return listen({
      ...guarded,
      host: "localhost",
      port: 0,
      open: (_at, through) => onSocket(at.socket, through),
    });
  return listen({
    ...guarded,
    ...at,
    open: (of, through) => share(of, through, "admin.port"),
  });
}

/** What a dead gateway left there is cleared away; what lives is left alone. */
async function onSocket(path: string, handler: RequestListener): Promise<Server> {
  const there = await lstat(path).catch(() => undefined);
  if (there && (!there.isSocket() || (await answers(path))))
    fail(
      "conflict",
      `${path} is in use. Stop what listens there, or choose another admin.socket.`,
      {
        code: "port_taken",
      },
    );
  if (there) await rm(path, { force: true });
  const server = createServer(handler);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(new Error(`The admin socket ${path} cannot be opened: ${cause.code}.`, { cause })),
    );
    // It is there for this user alone from its first moment on.
    const before = process.umask(0o177);
    try {
      server.listen(path, () => resolve());
    } finally {
      process.umask(before);
    }
  });
  server.removeAllListeners("error");
  return server;
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
