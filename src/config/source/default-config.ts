// What runs where there is no gateway.yaml: the one that ships with the package, to the letter.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** From source and from dist/ alike: the first folder upwards that is a package. */
export function findPackageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : findPackageRoot(above);
}

/** Path of a program in src/cli, from source and from dist alike. */
export const findProgram = (name: "plugin-process" | "worker"): string =>
  join(
    findPackageRoot(),
    import.meta.filename.endsWith(".ts") ? `src/cli/${name}.ts` : `dist/src/cli/${name}.js`,
  );

export const readDefaultConfig = (): string =>
  readFileSync(join(findPackageRoot(), "gateway.yaml"), "utf8");
