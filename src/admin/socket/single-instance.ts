// Ensures that only one gateway uses a state directory. The check runs before any file in the
// directory is opened. The check needs an HTTP client, which loads slowly, so it is skipped if
// there is no socket.
import { lstat } from "node:fs/promises";
import { findControlSocket } from "./control-socket-path.ts";

/**
 * Throws if a gateway runs on this state directory. Call it before anything in the directory is
 * opened.
 */
export async function assertNotRunning(stateDir: string): Promise<void> {
  if (await isSocketAbsent(await findControlSocket(stateDir))) return;
  const { assertNoneAnswers } = await import("./control-client.ts");
  await assertNoneAnswers(stateDir);
}

/** Named pipes of Windows are not in a folder. */
const isSocketAbsent = async (socket: string): Promise<boolean> =>
  process.platform !== "win32" &&
  lstat(socket).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT" || code === "ENOTDIR",
  );
