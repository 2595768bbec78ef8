// Creates or checks the state directory: it must be private, and writable by this user. Throws an
// error with the reason otherwise.
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { fail } from "../../model/error.ts";

export async function createStateDir(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    const why = ERRNO_TEXTS[code] ?? message;
    fail(
      "conflict",
      `The state directory ${path} cannot be used: ${why}. Correct the cause, or choose another directory with state_dir.`,
      { code: "state_dir", cause: error },
    );
  }
}

const ERRNO_TEXTS: Readonly<Record<string, string>> = {
  EACCES: "this user has no write permission",
  EPERM: "this user has no write permission",
  EROFS: "the file system is read-only",
  EEXIST: "it is a file",
  ENOTDIR: "a part of the path is a file",
  ENOSPC: "the disk is full",
};
