// Finds the config for installations without a gateway.yaml: exactly the file that ships with the
// package.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Returns the nearest parent folder that is a package. Works from source and from dist/. */
export function findPackageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : findPackageRoot(above);
}

const SOURCE_SUFFIX = import.meta.filename.endsWith(".ts") ? ".ts" : ".js";

/**
 * Returns a path below src, in the source or in dist. The build merges files, so paths relative to a
 * file differ between the two.
 */
export const sourcePath = (path: string): string =>
  join(findPackageRoot(), SOURCE_SUFFIX === ".ts" ? "src" : "dist/src", path);

/** Returns the path of a program in src/cli. */
export const findProgram = (name: "plugin-process" | "worker"): string =>
  sourcePath(`cli/${name}${SOURCE_SUFFIX}`);

export const readDefaultConfig = (): string =>
  readFileSync(join(findPackageRoot(), "gateway.yaml"), "utf8");
