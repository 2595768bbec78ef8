// What V8 has compiled is kept for the next start. A user who can write there can run code in this process. So it lies in the
// package, where that is true of every file, and only a folder of this user's alone is used.
import { lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { findPackageRoot } from "../../config/source/default-config.ts";

export function setUpCompileCache(
  folder = join(findPackageRoot(), "node_modules/.cache/tollgate"),
): void {
  if (isOwnedFolder(folder)) enableCompileCache(folder);
}

/** Made when it is not there; where nothing may be written there is none, and nothing is lost. */
export function isOwnedFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    // A shared Windows folder has other guards than these numbers.
    if (process.platform === "win32") return found.isDirectory();
    return found.isDirectory() && found.uid === process.getuid!() && (found.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
