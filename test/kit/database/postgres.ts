// A real PostgreSQL, in a temporary folder and on a port of its own: to be killed, stopped and started again. It runs as a user without
// rights where the tests run as root, because it refuses to be root.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import { root as checkout } from "../process/program.ts";
import { until } from "../wait.ts";
import { freePort } from "../process/ports.ts";

const DEBIAN = "/usr/lib/postgresql";
/** Every system has it. */
const NOBODY = 65_534;
const root = process.getuid?.() === 0;
const as = root ? { uid: NOBODY, gid: NOBODY } : {};

export interface PostgresOptions {
  /** Of the newest that is there, where nothing is said. */
  version?: number;
  /** "fsync=on": more of its settings, or others than the kit's. */
  settings?: readonly string[];
  /** Hears its log, and that of its replicas. */
  says?: (text: string) => void;
  /** Of the server's processes, beside this one's own. */
  env?: NodeJS.ProcessEnv;
}

export interface Postgres extends AsyncDisposable {
  readonly port: number;
  /** Of its first process, while it runs. */
  readonly pid: number;
  /** "15" */
  readonly version: string;
  readonly dir: string;
  /** Its own, beside the kit's. */
  readonly settings: readonly string[];
  readonly says: ((text: string) => void) | undefined;
  /** Of its superuser, at a database that is empty and not for tests. */
  readonly url: string;
  /** Of a new and empty database. */
  database(): Promise<string>;
  sql: typeof psql;
  /** All of its processes, as a power cut would; what it has acknowledged is there after `start`. */
  kill(): Promise<void>;
  /** It is silent, and not dead. */
  freeze(): void;
  thaw(): void;
  /** In good order; connections are cut. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** A database of another server, on this one. */
  at(url: string): string;
  /** From now on its replicas hear nothing of what it acknowledges. */
  deafen(): Promise<void>;
  /** A replica is the primary now, and may have a replica of its own. */
  promote(): Promise<void>;
}

/** Programs of another version, which no package of the system has: the folder of `initdb` and `postgres`. */
const OTHER = "TOLLGATE_TEST_POSTGRES_BIN";

/** Where its programs lie; undefined: there is none. */
export function postgresPrograms(version?: number): { bin: string; version: string } | undefined {
  const other = process.env[OTHER];
  if (other !== undefined && version === undefined) {
    const said = execFileSync(join(other, "postgres"), ["--version"], { encoding: "utf8" });
    return { bin: other, version: /\d+/.exec(said)![0] };
  }
  if (!existsSync(DEBIAN)) return undefined;
  const found = readdirSync(DEBIAN)
    .filter((name) => existsSync(join(DEBIAN, name, "bin/initdb")))
    .filter((name) => version === undefined || name === `${version}`)
    .toSorted((a, b) => Number(b) - Number(a));
  return found[0] === undefined
    ? undefined
    : { bin: join(DEBIAN, found[0], "bin"), version: found[0] };
}

/** False, with a word about it: what needs one is left out. */
export function hasPostgres(version?: number): boolean {
  if (postgresPrograms(version)) return true;
  console.log(
    `no PostgreSQL${version === undefined ? "" : ` ${version}`} here (Debian: apt-get install postgresql): what needs one is skipped`,
  );
  return false;
}

/** What a test machine can do without: the disk's own word for a commit, as no test cuts the power. */
const SETTINGS = [
  "fsync=off",
  "jit=off",
  "shared_buffers=32MB",
  "max_connections=200",
  "max_wal_size=256MB",
  "log_min_messages=log",
];

export async function startPostgres({
  version: wanted,
  settings = [],
  says,
  env,
}: PostgresOptions = {}): Promise<Postgres> {
  const programs = postgresPrograms(wanted);
  if (!programs) throw new Error("There is no PostgreSQL on this machine.");
  const dir = await folder("postgres");
  const words = ["-U", "tollgate", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  await made(programs, "initdb", dir, words);
  return served({ ...programs, dir, settings, says, env, ready: "ready to accept connections" });
}

interface Programs {
  readonly bin: string;
  readonly version: string;
}

/** The folder of its data, by one of its programs. */
async function made({ bin }: Programs, by: string, dir: string, words: readonly string[]) {
  await promisify(execFile)(join(bin, by), ["-D", join(dir, "data"), ...words], {
    ...as,
    cwd: dir,
  });
}

interface Serving extends Programs {
  readonly dir: string;
  readonly settings: readonly string[];
  readonly says: ((text: string) => void) | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** What it says when it has started for the first time. */
  readonly ready: string;
}

async function served(serving: Serving): Promise<Postgres> {
  const { bin, version, dir, settings, says, env, ready } = serving;
  const port = await freePort();
  const args = argsOf({ data: join(dir, "data"), port, dir, settings });
  const begin = (ready: string) => begun(join(bin, "postgres"), args, dir, ready, says, env);
  let server: ChildProcess | undefined = await begin(ready);
  const signal = (name: NodeJS.Signals) => {
    for (const pid of familyOf(server)) send(pid, name);
  };
  const gone = async (family: readonly number[]) => {
    await until(
      () => !family.some(lives),
      () => "the end of PostgreSQL's processes",
    );
    server = undefined;
  };
  const url = `postgres://tollgate@127.0.0.1:${port}/postgres`;
  return {
    port,
    get pid() {
      return server!.pid!;
    },
    version,
    dir,
    url,
    settings,
    says,
    sql: psql,
    async start() {
      server = await begin("ready to accept connections");
    },
    database: () => createDatabase(url),
    async kill() {
      const family = familyOf(server);
      for (const pid of family) send(pid, "SIGKILL");
      await gone(family);
    },
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    async stop() {
      const family = familyOf(server);
      // "Fast": it ends the connections, and then itself.
      if (server?.pid !== undefined) send(server.pid, "SIGINT");
      await gone(family);
    },
    at: (other) => Object.assign(new URL(other), { port: `${port}` }).href,
    async deafen() {
      const text = await psql(url, "SELECT pid FROM pg_stat_replication");
      for (const pid of text.split("\n").filter(Boolean)) send(Number(pid), "SIGSTOP");
    },
    promote: async () => void (await psql(url, "SELECT pg_promote(true, 60)")),
    async [Symbol.asyncDispose]() {
      const family = familyOf(server);
      for (const pid of family) send(pid, "SIGKILL");
      await gone(family);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Servers of other versions come without it, and it speaks to all of them. */
function psqlProgram(): string {
  const beside = join(postgresPrograms()!.bin, "psql");
  return existsSync(beside) ? beside : "psql";
}

const argsOf = (of: {
  data: string;
  port: number;
  dir: string;
  settings: readonly string[];
}): string[] => [
  "-D",
  of.data,
  "-p",
  `${of.port}`,
  "-k",
  of.dir,
  "-h",
  "127.0.0.1",
  ...[...SETTINGS, ...of.settings].flatMap((setting) => ["-c", setting]),
];

/** A second server that follows the first as fast as it can, which does not wait for it. */
export async function startReplica(of: Postgres): Promise<Postgres> {
  const programs = postgresPrograms(Number(of.version))!;
  const dir = await folder("replica");
  const words = ["-h", "127.0.0.1", "-p", `${of.port}`, "-U", "tollgate", "-R", "--no-sync"];
  await made(programs, "pg_basebackup", dir, [...words, "-X", "stream", "-c", "fast"]);
  const { settings, says } = of;
  return served({ ...programs, dir, settings, says, ready: "ready to accept read-only" });
}

/** What psql answers, a row a line. */
export async function psql(url: string, text: string): Promise<string> {
  const words = [url, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", text];
  const { stdout } = await promisify(execFile)(psqlProgram(), words);
  return stdout.trim();
}

/** At the server of this address, empty or as a `template` is; the new one's address. */
export async function createDatabase(server: string, template = "template1"): Promise<string> {
  const url = new URL(server);
  url.pathname = `/t${randomBytes(6).toString("hex")}`;
  await psql(server, `CREATE DATABASE ${url.pathname.slice(1)} TEMPLATE ${template}`);
  return url.href;
}

/** `store:` of a gateway.yaml, in YAML's flow style. */
export const postgresStoreYaml = (
  url: string,
  more: Readonly<Record<string, string>> = {},
  root = checkout,
): string =>
  `{ use: "${join(root, "plugins/stores/postgres/index.ts")}", with: { url: "${url}"${Object.entries(
    more,
  )
    .map(([name, value]) => `, ${name}: ${value}`)
    .join("")} } }`;

export interface PgBouncer extends AsyncDisposable {
  /** The same database, by way of it. */
  through(url: string): string;
  kill(): void;
}

const BOUNCER = "/usr/sbin/pgbouncer";

/** False, with a word about it. */
export function hasPgBouncer(): boolean {
  if (existsSync(BOUNCER)) return true;
  console.log("no PgBouncer here (Debian: apt-get install pgbouncer): what needs it is skipped");
  return false;
}

/** In transaction mode, before a server, with few connections to it. */
export async function startPgBouncer(postgres: Pick<Postgres, "port">): Promise<PgBouncer> {
  const dir = await folder("pgbouncer");
  const port = await freePort();
  const settings = [
    "[databases]",
    // A connection to the server has one user, whichever name a client gives.
    `* = host=127.0.0.1 port=${postgres.port} user=tollgate`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    "default_pool_size = 4",
    "max_client_conn = 200",
  ];
  const file = join(dir, "pgbouncer.ini");
  await writeFile(file, `${settings.join("\n")}\n`);
  const bouncer = await begun(BOUNCER, [file], dir, "process up");
  return {
    through(url) {
      const to = new URL(url);
      to.port = `${port}`;
      return to.href;
    },
    kill: () => void bouncer.kill("SIGKILL"),
    async [Symbol.asyncDispose]() {
      bouncer.kill("SIGKILL");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Of a user without rights; the path to it may be walked by all. */
async function folder(name: string): Promise<string> {
  // Not under the tests' own folder, which may be closed to that user.
  const dir = await mkdtemp(
    join(root ? "/tmp" : (process.env["TMPDIR"] ?? "/tmp"), `tollgate-${name}-`),
  );
  await chmod(dir, 0o700);
  if (root) chownSync(dir, NOBODY, NOBODY);
  return dir;
}

/** A server process that has said that it is ready. */
async function begun(
  program: string,
  args: readonly string[],
  cwd: string,
  ready: string,
  says: (text: string) => void = () => {},
  env: NodeJS.ProcessEnv = {},
): Promise<ChildProcess> {
  const child = spawn(program, args, {
    ...as,
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  let over = false;
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    // A long life has more to say than its start is worth.
    said = (said + text).slice(-10_000);
    says(text);
  });
  child.once("exit", () => (over = true));
  await until(
    () => said.includes(ready) || over,
    () => `"${ready}" in\n${said}`,
  ).catch((error: unknown) => {
    child.kill("SIGKILL");
    throw error;
  });
  if (over) throw new Error(`${program} ended:\n${said}`);
  return child;
}

/** A process of this test and its children: each of PostgreSQL's has a group of its own, so no group names them all. */
function familyOf(of: ChildProcess | undefined): readonly number[] {
  if (of?.pid === undefined || of.exitCode !== null) return [];
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === of.pid);
  return [of.pid, ...children];
}

/** Its name stands in parentheses and may have spaces; state and parent follow. */
function stat(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
const parentOf = (pid: number) => stat(pid)?.parent;
const lives = (pid: number): boolean => !["Z", "X", undefined].includes(stat(pid)?.state);

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** One that is free now, to be used again after each start. */
