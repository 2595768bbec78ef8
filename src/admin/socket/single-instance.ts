// One gateway for a state folder: asked before anything of it is opened. Asking takes HTTP, which is long to load, and where
// no socket stands no gateway runs.
import { lstat } from "node:fs/promises";
import { findControlSocket } from "./control-socket-path.ts";

/** Fails when a gateway runs on this state folder. Worth asking before anything of the folder is opened. */
export async function assertNotRunning(stateDir: string): Promise<void> {
  if (await isSocketAbsent(await findControlSocket(stateDir))) return;
  const { assertNoneAnswers } = await import("./control-client.ts");
  await assertNoneAnswers(stateDir);
}

/** Pipes of Windows are in no folder. */
const isSocketAbsent = async (socket: string): Promise<boolean> =>
  process.platform !== "win32" &&
  lstat(socket).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT" || code === "ENOTDIR",
  );
