// Where the control socket stands: in the state folder, or, when its path would be longer than a socket's may be, in a
// private folder beside other users' temporary files, noted in the state folder.
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fail } from "../../model/error.ts";

/** The kernel's own limit is 104 on some systems and 108 on others, its last byte included. */
const LONGEST = 100;

export interface ControlSocketPath {
  readonly socket: string;
  /** The socket and everything that was made for it. */
  remove(): Promise<void>;
}

const near = (stateDir: string) => join(stateDir, "control.sock");
const note = (stateDir: string) => join(stateDir, "control.path");

/** Where to look for a running gateway. */
export async function placeOf(stateDir: string): Promise<string> {
  if (process.platform === "win32") return pipe(stateDir);
  if (fits(near(stateDir))) return near(stateDir);
  return (await readFile(note(stateDir), "utf8").catch(() => far(stateDir))).trim();
}

/** The state folder, private, and a path in it or elsewhere that a socket may have. */
export async function makePlace(stateDir: string): Promise<ControlSocketPath> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  if (process.platform === "win32") return { socket: pipe(stateDir), remove: async () => {} };
  await chmod(stateDir, 0o700);
  if (fits(near(stateDir)))
    return { socket: near(stateDir), remove: () => rm(near(stateDir), { force: true }) };
  const socket = far(stateDir);
  await privateFolder(dirname(socket));
  await writeFile(note(stateDir), `${socket}\n`, { mode: 0o600 });
  return {
    socket,
    async remove() {
      await rm(dirname(socket), { recursive: true, force: true });
      await rm(note(stateDir), { force: true });
    },
  };
}

const fits = (path: string) => Buffer.byteLength(path) <= LONGEST;
const hash = (stateDir: string) => createHash("sha256").update(stateDir).digest("hex").slice(0, 16);
const pipe = (stateDir: string) => String.raw`\\.\pipe\tollgate-${hash(stateDir)}`;

function far(stateDir: string): string {
  const name = join(`tollgate-${process.getuid?.() ?? 0}-${hash(stateDir)}`, "control.sock");
  return [tmpdir(), "/tmp"].map((folder) => join(folder, name)).find(fits)!;
}

/** Every user may write beside it, so it may be another user's by now. */
async function privateFolder(folder: string): Promise<void> {
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
