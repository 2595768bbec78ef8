// What runs where there is no gateway.yaml: the one that ships with the package, to the letter.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** From source and from dist/ alike: the first folder upwards that is a package. */
export function packageRoot(from = import.meta.dirname): string {
  const above = dirname(from);
  return existsSync(join(from, "package.json")) || above === from ? from : packageRoot(above);
}

export const defaultText = (): string => readFileSync(join(packageRoot(), "gateway.yaml"), "utf8");
