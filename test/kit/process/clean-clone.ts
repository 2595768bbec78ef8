// Creates a copy of the checkout like a clone: with the current files and without build output.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { root } from "./program.ts";

export function cleanClone(place: string): void {
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  if (listed.status !== 0) throw new Error(`git lists nothing: ${listed.stderr}`);
  for (const file of listed.stdout.split("\n").filter(Boolean))
    if (existsSync(join(root, file))) cpSync(join(root, file), join(place, file));
}

/**
 * Installs packages as `npm ci` does, in less time: every package is the checkout's, and this
 * package is the clone's.
 */
export function linkDependencies(place: string): void {
  const modules = join(place, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(root, "node_modules")))
    if (name === ".bin" || !name.startsWith("."))
      symlinkSync(
        name === "tollgate" ? place : join(root, "node_modules", name),
        join(modules, name),
      );
}
