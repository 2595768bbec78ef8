import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findPackageRoot } from "../../config/source/default-config.ts";

/** The kit is a part of Tollgate that a gateway never loads: it is not built into the program, but lies beside it. */
export const importTestingKit = (): Promise<typeof import("../../testing/index.ts")> => {
  const source = import.meta.filename.endsWith(".ts");
  const file = source ? "src/testing/index.ts" : "dist/src/testing/index.js";
  return import(pathToFileURL(join(findPackageRoot(), file)).href);
};
