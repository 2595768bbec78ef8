// The same tests on another store: with TOLLGATE_TEST_STORE=postgres each gateway of a test gets a database of its own in the place of one of the
// stores that the program has built in. A file that names a store of another kind keeps it. `test/on-postgres.ts` sets both variables.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createDatabase, postgresStoreYaml } from "./postgres.ts";

const server =
  process.env["TOLLGATE_TEST_STORE"] === "postgres"
    ? process.env["TOLLGATE_TEST_POSTGRES"]
    : undefined;

/** On this machine: what a gateway reaches that may reach nothing else. */
export const storePort = server && new URL(server).port;

/** Tests that look into the file of the built-in store have nothing to look into. */
export const isOtherStore = server !== undefined;

/** Of the server: as a migration leaves it, so that a gateway that starts has nothing to make. */
export const TEMPLATE_DATABASE = "template_tollgate";

/** By the folder: a gateway that starts again there finds what it has written. */
const databases = new Map<string, Promise<string>>();

const ANY = /^[ \t]*"?store"?:/m;
const BUILT_IN =
  /^[ \t]*"?store"?: *(?:(?:memory|sqlite)|\{ use: (?:memory|sqlite)\b.*\}),?[ \t]*$/m;

/** gateway.yaml with the store that is asked for, each of its other lines where it was. */
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

/** An address that stands in gateway.yaml itself is warned of. */
async function inFile(url: string, dir: string): Promise<string> {
  const file = join(dir, "database-url");
  await writeFile(file, url);
  return `\${file:${file}}`;
}
