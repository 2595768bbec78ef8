// What runs where there is no gateway.yaml: the one that ships with the package, to the letter.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** From source and from dist/ alike: the first folder upwards that is a package. */
export function findPackageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : findPackageRoot(above);
}

export const readDefaultConfig = (): string =>
  readFileSync(join(findPackageRoot(), "gateway.yaml"), "utf8");
