// Finds the config for installations without a gateway.yaml: exactly the file that ships with the
// package.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Returns the nearest parent folder that is a package. Works from source and from dist/. */
export function findPackageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : findPackageRoot(above);
}

/** Returns the path of a program in src/cli. Works from source and from dist/. */
export const findProgram = (name: "plugin-process" | "worker"): string =>
  join(
    findPackageRoot(),
    import.meta.filename.endsWith(".ts") ? `src/cli/${name}.ts` : `dist/src/cli/${name}.js`,
  );

export const readDefaultConfig = (): string =>
  readFileSync(join(findPackageRoot(), "gateway.yaml"), "utf8");
