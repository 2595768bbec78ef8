// One gateway for a state folder: asked before anything of it is opened. Asking takes HTTP, which is long to load, and where
// no socket stands no gateway runs.
import { lstat } from "node:fs/promises";
import { placeOf } from "./socket-path.ts";

export async function refuseSecond(stateDir: string): Promise<void> {
  if (await absent(await placeOf(stateDir))) return;
  const control = await import("./socket.ts");
  await control.refuseSecond(stateDir);
}

/** Pipes of Windows are in no folder. */
const absent = async (socket: string): Promise<boolean> =>
  process.platform !== "win32" &&
  lstat(socket).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT" || code === "ENOTDIR",
  );
