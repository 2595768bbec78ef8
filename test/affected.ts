// Selects the nightly test files for a change: those about a changed file, or about a file that
// imports it.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path/posix";
import { importers, importGraph } from "./layers.ts";
import { NIGHTLY } from "./tiers.ts";

const root = new URL("..", import.meta.url).pathname;

/** Paths that differ between a commit and the working tree. */
export function changedSince(folder: string, commit: string): string[] {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: folder, encoding: "utf8" }).split("\n").filter(Boolean);
  const base = git("merge-base", commit, "HEAD")[0]!;
  return [
    ...git("diff", "--name-only", base),
    ...git("ls-files", "--others", "--exclude-standard"),
  ];
}

/** The text of each TypeScript file in these folders. */
export function sources(...folders: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const folder of folders)
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }))
      if (/\.tsx?$/.test(path) && !/(^|\/)(node_modules|dist)\//.test(path))
        found.set(join(folder, path), readFileSync(join(root, folder, path), "utf8"));
  return found;
}

/** Returns the nightly test files for a change of these paths. */
export function affected(changed: readonly string[]): string[] {
  const from = importers(importGraph(sources("src", "plugins")));
  const reached = new Set(changed);
  // Sets can grow while they are iterated.
  for (const file of reached) for (const importer of from.get(file) ?? []) reached.add(importer);
  const isAbout = (subject: string) =>
    [...reached].some(
      (file) =>
        file === subject || file.startsWith(`${subject}/`) || file.startsWith(`${subject}.`),
    );
  return Object.entries(NIGHTLY)
    .filter(([file, subjects]) => reached.has(file) || subjects.some(isAbout))
    .map(([file]) => file);
}
