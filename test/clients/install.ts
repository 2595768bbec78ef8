// A client from npm, in a temporary folder of its own: never a dependency. Installed clients are
// reused.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** The folder of all installed clients. */
export const SHELF = join(tmpdir(), "tollgate-clients");
const INSTALL_MS = 300_000;
const QUIETLY = ["--ignore-scripts", "--no-audit", "--no-fund"];

/** Thrown if a client cannot be installed. Its checks are then skipped. */
export class NotInstalled extends Error {
  override name = "NotInstalled";
  constructor(what: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`cannot install ${what}: ${why.slice(0, 500)}`, { cause });
  }
}

export interface Package {
  readonly name: string;
  readonly version: string;
  /** The script that starts the client. It finds its own binary with or without install scripts. */
  readonly main: string;
}

const folderOf = ({ name, version }: Package) =>
  join(SHELF, `${name.replace(/^@/, "").replace("/", "-")}@${version}`);
const mainOf = (of: Package) => join(folderOf(of), "node_modules", of.name, of.main);

export const isInstalled = (of: Package): boolean => existsSync(mainOf(of));

export const uninstall = (of: Package): Promise<void> =>
  rm(folderOf(of), { recursive: true, force: true });

/** The path of the script that starts it. */
export async function installed(of: Package): Promise<string> {
  if (isInstalled(of)) return mainOf(of);
  await mkdir(SHELF, { recursive: true });
  const place = await mkdtemp(join(SHELF, ".new-"));
  try {
    await writeFile(join(place, "package.json"), JSON.stringify({ name: "shelf", private: true }));
    await run("npm", ["install", "--prefix", place, ...QUIETLY, `${of.name}@${of.version}`], {
      cwd: place,
      timeout: INSTALL_MS,
    });
    // A faster process has put the same content there.
    await rename(place, folderOf(of)).catch(() => {});
  } catch (error) {
    throw new NotInstalled(`${of.name} ${of.version}`, error);
  } finally {
    await rm(place, { recursive: true, force: true });
  }
  if (isInstalled(of)) return mainOf(of);
  throw new NotInstalled(`${of.name} ${of.version}`, `the package has no ${of.main}`);
}
