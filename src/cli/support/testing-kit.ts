import { pathToFileURL } from "node:url";
import { sourcePath } from "../../config/source/default-config.ts";

/**
 * Imports the plugin test kit. A gateway never loads it, so it is not bundled with the program but
 * kept in separate files.
 */
export const importTestingKit = (): Promise<typeof import("../../testing/index.ts")> => {
  const suffix = import.meta.filename.slice(-3);
  return import(pathToFileURL(sourcePath(`testing/index${suffix}`)).href);
};
