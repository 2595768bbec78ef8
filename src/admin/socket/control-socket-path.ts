// Where the control socket stands: in the state folder, or, when its path would be longer than a socket's may be, in a
// private folder beside other users' temporary files, noted in the state folder.
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fail } from "../../model/error.ts";

/** The kernel's own limit is 104 on some systems and 108 on others, its last byte included. */
const MAX_PATH_BYTES = 100;

export interface ControlSocketPath {
  readonly socket: string;
  /** The socket and everything that was made for it. */
  remove(): Promise<void>;
}

const defaultPathOf = (stateDir: string) => join(stateDir, "control.sock");
const pointerFileOf = (stateDir: string) => join(stateDir, "control.path");

/** Where to look for a running gateway. */
export async function findControlSocket(stateDir: string): Promise<string> {
  if (process.platform === "win32") return namedPipeOf(stateDir);
  if (isShortEnough(defaultPathOf(stateDir))) return defaultPathOf(stateDir);
  return (
    await readFile(pointerFileOf(stateDir), "utf8").catch(() => temporaryPathOf(stateDir))
  ).trim();
}

/** The state folder, private, and a path in it or elsewhere that a socket may have. */
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

/** Every user may write beside it, so it may be another user's by now. */
async function ensurePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid!() || (found.mode & 0o077) !== 0)
    fail(
      "conflict",
      `${folder} is not a private folder of this user. Remove it, or choose a shorter state_dir.`,
      {
        code: "socket_folder",
      },
    );
}
