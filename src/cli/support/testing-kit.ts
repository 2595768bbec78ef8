import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findPackageRoot } from "../../config/source/default-config.ts";

/**
 * Imports the plugin test kit. A gateway never loads it, so it is not bundled with the program but
 * kept in separate files.
 */
export const importTestingKit = (): Promise<typeof import("../../testing/index.ts")> => {
  const source = import.meta.filename.endsWith(".ts");
  const file = source ? "src/testing/index.ts" : "dist/src/testing/index.js";
  return import(pathToFileURL(join(findPackageRoot(), file)).href);
};
