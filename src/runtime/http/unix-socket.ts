// A unix socket as a listener. What a dead gateway left there is cleared away; what lives is left alone. It is opened beside its name and
// then takes that: it is never there with other rights, and a process that closes its own end takes the name from no other.
import { chmod, lstat, rename, rm } from "node:fs/promises";
import { connect } from "node:net";
import type { Server } from "node:http";
import { fail } from "../../model/error.ts";

/** Before it is opened, by the process that opens it for all. `key`: what says it in gateway.yaml. */
export async function removeStaleSocket(path: string, key: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined);
  if (there && (!there.isSocket() || (await isAnswering(path))))
    fail("conflict", `${path} is in use. Stop what listens there, or choose another ${key}.`, {
      code: "port_taken",
    });
  await rm(temporaryPathOf(path), { force: true });
  if (there) await rm(path, { force: true });
}

/** What it is called until it has its rights. */
export const temporaryPathOf = (path: string): string => `${path}~`;

/** `mode`: in octal digits. */
export async function listenOnSocket(
  server: Server,
  { path, mode, key }: { readonly path: string; readonly mode: string; readonly key: string },
): Promise<Server> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(
        new Error(`The socket ${path} cannot be opened: ${cause.code}. It is ${key}.`, { cause }),
      ),
    );
    const before = process.umask(0o177);
    try {
      server.listen(temporaryPathOf(path), () => resolve());
    } finally {
      process.umask(before);
    }
  });
  server.removeAllListeners("error");
  try {
    await chmod(temporaryPathOf(path), Number.parseInt(mode, 8));
    await rename(temporaryPathOf(path), path);
  } catch (error) {
    // Another process of this gateway has done it already: it is the same socket.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return server;
}

/** At a gateway's end: their names are its own to take away. */
export async function removeSockets(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { force: true });
}

const isAnswering = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
