// Runs the same tests on another store. With TOLLGATE_TEST_STORE=postgres, each gateway of a test
// gets its own database in place of the built-in store. A config that names another kind of store
// keeps it. `test/on-postgres.ts` sets both variables.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createDatabase, postgresStoreYaml } from "./postgres.ts";

const server =
  process.env["TOLLGATE_TEST_STORE"] === "postgres"
    ? process.env["TOLLGATE_TEST_POSTGRES"]
    : undefined;

/** Host on this machine, for a gateway without network access. */
export const storePort = server && new URL(server).port;

/** Tests that read the file of the built-in store are skipped. */
export const isOtherStore = server !== undefined;

/** A template database after the migration, so that a gateway starts quickly. */
export const TEMPLATE_DATABASE = "template_tollgate";

/** Keyed by folder: a gateway that starts again in it finds its data. */
const databases = new Map<string, Promise<string>>();

const ANY = /^[ \t]*"?store"?:/m;
const BUILT_IN =
  /^[ \t]*"?store"?: *(?:(?:memory|sqlite)|\{ use: (?:memory|sqlite)\b.*\}),?[ \t]*$/m;

/** Returns gateway.yaml with the requested store, with every other line unchanged. */
export async function withTestStore(yaml: string, dir: string): Promise<string> {
  if (server === undefined) return yaml;
  const built = BUILT_IN.exec(yaml);
  if (!built && ANY.test(yaml)) return yaml;
  if (!databases.has(dir))
    databases.set(
      dir,
      createDatabase(server, TEMPLATE_DATABASE).then((url) => inFile(url, dir)),
    );
  const store = `store: ${postgresStoreYaml(await databases.get(dir)!)}`;
  return built ? yaml.replace(BUILT_IN, () => store) : `${yaml.trimEnd()}\n${store}\n`;
}

/** A URL inside gateway.yaml causes a warning. */
async function inFile(url: string, dir: string): Promise<string> {
  const file = join(dir, "database-url");
  await writeFile(file, url);
  return `\${file:${file}}`;
}
