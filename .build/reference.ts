// `npm run docs:reference`: generates docs/reference from the schemas, commands, metrics, error
// codes, and types that the gateway uses. test/docs/reference.test.ts checks that the pages are
// current. Pages of the folder that are written by hand are not changed.
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { report } from "./contract.ts";
import { cliPages } from "./reference/cli.ts";
import { configPages } from "./reference/config.ts";
import { errorPages } from "./reference/errors.ts";
import { httpApiPages } from "./reference/http-api.ts";
import { GENERATED, type ReferencePage } from "./reference/markdown.ts";
import { monitoringPages } from "./reference/monitoring.ts";
import { pluginApiPages } from "./reference/plugin-api.ts";
import { providerFailurePages } from "./reference/provider-failures.ts";

export const ROOT = join(import.meta.dirname, "..");
export const FOLDER = "docs/reference";

/** Returns all generated files. */
export async function referencePages(): Promise<ReferencePage[]> {
  return [
    ...(await configPages()),
    ...(await cliPages()),
    ...(await httpApiPages()),
    ...errorPages(),
    ...monitoringPages(),
    ...providerFailurePages(),
    ...pluginApiPages(),
    { path: `${FOLDER}/plugin-api/api.txt`, text: report() },
  ];
}

/** Returns the generated pages in the folder that no generator writes any more. */
export const stalePages = (pages: readonly ReferencePage[]): string[] => {
  const known = new Set(pages.map(({ path }) => path));
  return globSync(`${FOLDER}/**/*.md`, { cwd: ROOT }).filter(
    (path) => !known.has(path) && readFileSync(join(ROOT, path), "utf8").includes(GENERATED),
  );
};

/** Writes all files and removes stale files. */
export async function writeReference(): Promise<number> {
  const pages = await referencePages();
  for (const path of stalePages(pages)) rmSync(join(ROOT, path));
  for (const { path, text } of pages) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
  return pages.length;
}

if (import.meta.main) console.log(`${FOLDER}: ${await writeReference()} files`);
