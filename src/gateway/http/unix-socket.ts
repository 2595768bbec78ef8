// A unix socket as a listener. What a dead gateway left there is cleared away; what lives is left alone.
import { chmod, lstat, rm } from "node:fs/promises";
import { connect } from "node:net";
import type { Server } from "node:http";
import { fail } from "../../model/error.ts";

/** Before it is opened, by the process that opens it for all. `key`: what says it in gateway.yaml. */
export async function clearSocket(path: string, key: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined);
  if (there && (!there.isSocket() || (await answers(path))))
    fail("conflict", `${path} is in use. Stop what listens there, or choose another ${key}.`, {
      code: "port_taken",
    });
  if (there) await rm(path, { force: true });
}

/** It is there for this user alone until its rights are set. `mode`: in octal digits. */
export async function openSocket(
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
      server.listen(path, () => resolve());
    } finally {
      process.umask(before);
    }
  });
  server.removeAllListeners("error");
  await chmod(path, Number.parseInt(mode, 8));
  return server;
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
