// Python's own shelf: a virtual environment with the newest clients that have been tried here, made once for each list of
// them, in a temporary folder. On a machine that has Python but cannot make one, the missing package is installed first.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { NotInstalled, SHELF } from "../install.ts";

const run = promisify(execFile);
const WANTED = join(import.meta.dirname, "requirements.txt");
/** What stands beside these in an older line, because one of them wants it, or because it speaks otherwise. */
const OLDER = join(import.meta.dirname, "requirements-older.txt");
/** A minute on a machine of its own, ten times that on one that is shared. */
const INSTALL_MS = 900_000;
/** What is never imported need not be compiled. */
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
/** Goes before the others on the path of a library that is to have the older ones. */
export const older = join(FOLDER, "older");

/** Where compiled code is kept, that of the scripts beside this file too. */
export const compiled = join(FOLDER, "compiled");

/** Of a package, as it is wanted. */
export const versionOf = (name: string, isOlder = false): string =>
  new RegExp(`^${name}(?:\\[.*\\])?==(.*)$`, "m").exec(isOlder ? olderText : text)?.[1] ??
  (isOlder ? versionOf(name) : "");

let making: Promise<string> | undefined;

/** The path of an interpreter that has all of them. What cannot be installed is not tried again for each of them. */
export const python = (): Promise<string> =>
  (making ??= environment(FOLDER, async (pip) => {
    await pip("-r", WANTED);
    await pip("--no-deps", "--target", older, "-r", OLDER);
  }));

type Pip = (...args: readonly string[]) => Promise<unknown>;

/** Creates a virtual environment, or finds it whole. Returns the path of its interpreter. */
export async function environment(
  folder: string,
  fill: (pip: Pip) => Promise<unknown>,
): Promise<string> {
  const python = join(folder, "bin/python");
  // Written last: an environment without it broke off and is made again.
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

/** One that can make environments. Without the package for it, the module is there and fails. */
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
