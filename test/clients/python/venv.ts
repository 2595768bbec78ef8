// A virtual environment with the newest tested Python clients, created once for each list in a
// temporary folder. If Python cannot create one, the missing package is installed first.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { NotInstalled, SHELF } from "../install.ts";

const run = promisify(execFile);
const WANTED = join(import.meta.dirname, "requirements.txt");
/** Older versions next to these, because a client needs them, or because their format differs. */
const OLDER = join(import.meta.dirname, "requirements-older.txt");
/** A minute on an idle machine, and ten times that on a shared one. */
const INSTALL_MS = 900_000;
/** Modules that are never imported are not compiled. */
const QUIETLY = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"];

const text = readFileSync(WANTED, "utf8");
const olderText = readFileSync(OLDER, "utf8");
const FOLDER = join(
  SHELF,
  `python-${createHash("sha256")
    .update(text + olderText)
    .digest("hex")
    .slice(0, 12)}`,
);
/** First on the path of a library that needs the older versions. */
export const older = join(FOLDER, "older");

/** Folder for compiled code, including the scripts next to this file. */
export const compiled = join(FOLDER, "compiled");

/** Version of a package. */
export const versionOf = (name: string, isOlder = false): string =>
  new RegExp(`^${name}(?:\\[.*\\])?==(.*)$`, "m").exec(isOlder ? olderText : text)?.[1] ??
  (isOlder ? versionOf(name) : "");

let making: Promise<string> | undefined;

/** The path of an interpreter with all of them. A failed installation is not repeated for each. */
export const python = (): Promise<string> =>
  (making ??= environment(FOLDER, async (pip) => {
    await pip("-r", WANTED);
    await pip("--no-deps", "--target", older, "-r", OLDER);
  }));

type Pip = (...args: readonly string[]) => Promise<unknown>;

/** Creates a virtual environment, or finds a complete one. Returns the path of its interpreter. */
export async function environment(
  folder: string,
  fill: (pip: Pip) => Promise<unknown>,
): Promise<string> {
  const python = join(folder, "bin/python");
  // Written last: an environment without it is incomplete and created again.
  const whole = join(folder, "whole");
  if (existsSync(whole)) return python;
  const options = { timeout: INSTALL_MS, maxBuffer: 1 << 26 };
  await rm(folder, { recursive: true, force: true });
  await mkdir(SHELF, { recursive: true });
  try {
    await run(await interpreter(), ["-m", "venv", folder], options);
    await fill((...args) => run(python, ["-m", "pip", "install", ...QUIETLY, ...args], options));
    await writeFile(whole, "");
  } catch (error) {
    throw new NotInstalled(basename(folder), error);
  }
  return python;
}

/**
 * An interpreter that can create environments. Without its package, the module exists and fails.
 */
async function interpreter(): Promise<string> {
  const able = () =>
    run("python3", ["-c", "import ensurepip, venv"]).then(
      () => true,
      () => false,
    );
  if (await able()) return "python3";
  await run("apt-get", ["update", "-qq"], { timeout: INSTALL_MS });
  await run("apt-get", ["install", "-y", "-qq", "python3", "python3-venv"], {
    timeout: INSTALL_MS,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  if (await able()) return "python3";
  throw new Error("There is no Python here that can make a virtual environment.");
}
