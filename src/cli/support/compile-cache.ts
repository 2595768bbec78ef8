// Keeps V8's compiled code for the next start. A user who can write to the cache can run code in
// this process. The cache is therefore in the package, because the package's own files have the
// same risk. It is used only if its folder belongs to this user.
import { lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { findPackageRoot } from "../../lib/package-root.ts";

export function setUpCompileCache(
  folder = join(findPackageRoot(), "node_modules/.cache/tollgate"),
): void {
  if (isOwnedFolder(folder)) enableCompileCache(folder);
}

/**
 * Returns whether the folder belongs to this user alone. Creates it if it is missing. If that
 * fails, there is no cache, and starts are slower.
 */
export function isOwnedFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    // These mode bits have no meaning on Windows, where other rules protect a shared folder.
    if (process.platform === "win32") return found.isDirectory();
    return found.isDirectory() && found.uid === process.getuid!() && (found.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
