// The same tests on another store: with TOLLGATE_TEST_STORE=postgres each gateway of a test whose file names no store gets a database of
// its own. `test/on-postgres.ts` sets both variables.
import { newDatabase, postgresStore } from "./postgres.ts";

/** By the folder: a gateway that starts again there finds what it has written. */
const databases = new Map<string, Promise<string>>();

/** gateway.yaml with the store that is asked for. */
export async function inStore(yaml: string, dir: string): Promise<string> {
  const server = process.env["TOLLGATE_TEST_POSTGRES"];
  if (process.env["TOLLGATE_TEST_STORE"] !== "postgres" || !server) return yaml;
  if (/^\s*"?store"?:/m.test(yaml)) return yaml;
  if (!databases.has(dir)) databases.set(dir, newDatabase(server));
  return `store: ${postgresStore(await databases.get(dir)!)}\n${yaml}`;
}
