// A client as npm has it, in a temporary folder of its own: never a dependency. What was installed once is found again.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const SHELF = join(tmpdir(), "tollgate-clients");
const INSTALL_MS = 300_000;
const QUIETLY = ["--ignore-scripts", "--no-audit", "--no-fund"];

export interface Package {
  readonly name: string;
  readonly version: string;
  /** The script in it that starts the client; it finds its own binary, install scripts or not. */
  readonly main: string;
}

const folderOf = ({ name, version }: Package) =>
  join(SHELF, `${name.replace(/^@/, "").replace("/", "-")}@${version}`);
const mainOf = (of: Package) => join(folderOf(of), "node_modules", of.name, of.main);

export const isInstalled = (of: Package): boolean => existsSync(mainOf(of));

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
    // A process that was quicker has put the same thing there.
    await rename(place, folderOf(of)).catch(() => {});
  } finally {
    await rm(place, { recursive: true, force: true });
  }
  return mainOf(of);
}
