// The folder of the package, and the paths of files in it. The process that only restarts itself
// loads this file, so it imports nothing of Tollgate but `source-file.ts`.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { IS_SOURCE, sourceFile } from "./source-file.ts";

/** Returns the nearest parent folder that is a package. Works from source and from dist/. */
export function findPackageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : findPackageRoot(above);
}

/**
 * Returns a path below src, in the source or in dist. The build merges files, so paths relative to a
 * file differ between the two.
 */
export const sourcePath = (path: string): string =>
  join(findPackageRoot(), IS_SOURCE ? "src" : "dist/src", path);

/** Returns the path of a program in src/cli. */
export const findProgram = (name: "plugin-process" | "worker"): string =>
  sourcePath(sourceFile(`cli/${name}.ts`));

export const readDefaultConfig = (): string =>
  readFileSync(join(findPackageRoot(), "gateway.yaml"), "utf8");
