// Opens a Unix socket as a listener. A stale socket of a gateway that has ended is removed, and a
// live socket is not changed. The socket is created under a temporary name and then renamed. It
// therefore never exists with other permissions, and a process that closes its own socket does not
// remove the path of another process's socket.
import { chmod, lstat, rename, rm } from "node:fs/promises";
import { connect } from "node:net";
import type { Server } from "node:http";
import { fail } from "../../model/error.ts";

export interface SocketAddress {
  readonly path: string;
  /** Permissions in octal digits. */
  readonly mode: string;
  /** Key of gateway.yaml that sets the path. */
  readonly key: string;
}

/**
 * Removes the socket that a dead process left at the path. Called before the socket is opened, by
 * the process that opens it for all workers.
 */
export async function removeStaleSocket({
  path,
  key,
}: Pick<SocketAddress, "path" | "key">): Promise<void> {
  if (isNamedPipe(path)) return;
  const there = await lstat(path).catch(() => undefined);
  if (there && (!there.isSocket() || (await isAnswering(path))))
    fail(
      "conflict",
      `${path} is in use. Stop the process that listens there, or choose another ${key}.`,
      {
        code: "port_taken",
      },
    );
  await rm(temporaryPathOf(path), { force: true });
  if (there) await rm(path, { force: true });
}

/** Returns the name that the socket has until its permissions are set. */
export const temporaryPathOf = (path: string): string => `${path}~`;

/** Opens the socket. */
export async function listenOnSocket(
  server: Server,
  { path, mode, key }: SocketAddress,
): Promise<Server> {
  const openedPath = isNamedPipe(path) ? path : temporaryPathOf(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(new Error(`Cannot open the socket ${path} from ${key}: ${cause.code}.`, { cause })),
    );
    const before = process.umask(0o177);
    try {
      server.listen(openedPath, () => resolve());
    } finally {
      process.umask(before);
    }
  });
  server.removeAllListeners("error");
  if (openedPath === path) return server;
  try {
    await chmod(temporaryPathOf(path), Number.parseInt(mode, 8));
    await rename(temporaryPathOf(path), path);
  } catch (error) {
    // Another process of this gateway has already renamed the socket. It is the same socket.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return server;
}

/** Removes the gateway's sockets when it ends. */
export async function removeSockets(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { force: true });
}

/** Named pipes of Windows are in no folder, and only the gateway's user can open them. */
const isNamedPipe = (path: string): boolean => path.startsWith(String.raw`\\.\pipe`);

const isAnswering = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
