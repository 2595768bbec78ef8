// Determines the path of the control socket. It is in the state directory or, if that path would be
// too long for a socket, in a private folder in the temporary directory. The state directory then
// contains a note with that path.
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fail } from "../../model/error.ts";

/**
 * Maximum path length, in bytes. The kernel's limit is 104 on some systems and 108 on others,
 * including the terminating byte.
 */
const MAX_PATH_BYTES = 100;

export interface ControlSocketPath {
  readonly socket: string;
  /** Removes the socket and everything that was created for it. */
  remove(): Promise<void>;
}

const defaultPathOf = (stateDir: string) => join(stateDir, "control.sock");
const pointerFileOf = (stateDir: string) => join(stateDir, "control.path");

/** Returns the path at which the control socket of a running gateway can be reached. */
export async function findControlSocket(stateDir: string): Promise<string> {
  if (process.platform === "win32") return namedPipeOf(stateDir);
  if (isShortEnough(defaultPathOf(stateDir))) return defaultPathOf(stateDir);
  return (
    await readFile(pointerFileOf(stateDir), "utf8").catch(() => temporaryPathOf(stateDir))
  ).trim();
}

/** Creates the private state directory and returns a valid socket path, in it or elsewhere. */
export async function createControlSocketPath(stateDir: string): Promise<ControlSocketPath> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  if (process.platform === "win32")
    return { socket: namedPipeOf(stateDir), remove: async () => {} };
  await chmod(stateDir, 0o700);
  if (isShortEnough(defaultPathOf(stateDir)))
    return {
      socket: defaultPathOf(stateDir),
      remove: () => rm(defaultPathOf(stateDir), { force: true }),
    };
  const socket = temporaryPathOf(stateDir);
  await ensurePrivateFolder(dirname(socket));
  await writeFile(pointerFileOf(stateDir), `${socket}\n`, { mode: 0o600 });
  return {
    socket,
    async remove() {
      await rm(dirname(socket), { recursive: true, force: true });
      await rm(pointerFileOf(stateDir), { force: true });
    },
  };
}

const isShortEnough = (path: string) => Buffer.byteLength(path) <= MAX_PATH_BYTES;
const hashOf = (stateDir: string) =>
  createHash("sha256").update(stateDir).digest("hex").slice(0, 16);
const namedPipeOf = (stateDir: string) => String.raw`\\.\pipe\tollgate-${hashOf(stateDir)}`;

function temporaryPathOf(stateDir: string): string {
  const name = join(`tollgate-${process.getuid?.() ?? 0}-${hashOf(stateDir)}`, "control.sock");
  return [tmpdir(), "/tmp"].map((folder) => join(folder, name)).find(isShortEnough)!;
}

/** The parent directory is writable for every user, so the folder may belong to another user. */
async function ensurePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid!() || (found.mode & 0o077) !== 0)
    fail(
      "conflict",
      `${folder} is not a private directory of this user. Remove it, or choose a shorter state_dir.`,
      {
        code: "socket_folder",
      },
    );
}

// Marks a hot restart in progress with a file in the state directory. During a hot restart, there
// is no control socket for a short time, and clients wait. Without the file, clients would report
// that no gateway is running, and offline commands would change the files.

const markerPathOf = (stateDir: string) => join(stateDir, "control.handoff");

/** Called by the old process before it closes its socket. */
export const writeHandoffMarker = (stateDir: string): Promise<void> =>
  writeFile(markerPathOf(stateDir), `${process.pid}\n`, { mode: 0o600 });

/**
 * Called by the new process when it answers. A file that cannot be removed does not prevent it from
 * serving.
 */
export const removeHandoffMarker = (stateDir: string): Promise<void> =>
  rm(markerPathOf(stateDir), { force: true }).catch(() => {});

/** Whether a hot restart is in progress. The marker of a process that was killed is ignored. */
export async function isHandoffInProgress(stateDir: string): Promise<boolean> {
  const pid = Number(await readFile(markerPathOf(stateDir), "utf8").catch(() => ""));
  if (!(pid > 0)) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
