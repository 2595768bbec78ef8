// A real PostgreSQL in a temporary folder, on its own port. It can be killed, stopped, and started
// again. If the tests run as root, it runs as a user without rights, because it refuses to run as
// root.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root as checkout } from "../process/program.ts";
import { until } from "../wait.ts";
import { freePort } from "../process/ports.ts";

const DEBIAN = "/usr/lib/postgresql";
/** Exists on every system. */
const NOBODY = 65_534;
const root = process.getuid?.() === 0;
const as = root ? { uid: NOBODY, gid: NOBODY } : {};

export interface PostgresOptions {
  /** The newest installed version by default. */
  version?: number;
  /** More settings, such as "fsync=on", which override the kit's. */
  settings?: readonly string[];
  /** Receives lines of its log and of its replicas' logs. */
  says?: (text: string) => void;
  /** PIDs of the server's processes, without this one's. */
  env?: NodeJS.ProcessEnv;
}

export interface Postgres extends AsyncDisposable {
  readonly port: number;
  /** PID of its first process while it runs. */
  readonly pid: number;
  /** "15" */
  readonly version: string;
  readonly dir: string;
  /** Settings in addition to the kit's. */
  readonly settings: readonly string[];
  readonly says: ((text: string) => void) | undefined;
  /** URL for its superuser, of an empty database that tests do not use. */
  readonly url: string;
  /** URL of a new, empty database. */
  database(): Promise<string>;
  sql: typeof psql;
  /** Kills all of its processes, like a power failure. Acknowledged data exists after `start`. */
  kill(): Promise<void>;
  /** The server does not respond, but is not dead. */
  freeze(): void;
  thaw(): void;
  /** Stops it cleanly. Connections are closed. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** A database of another server on this one. */
  at(url: string): string;
  /** Disconnects its replicas from new data. */
  deafen(): Promise<void>;
  /** Promotes a replica to primary. It may then have a replica of its own. */
  promote(): Promise<void>;
}

/** Folder of `initdb` and `postgres` of another version that the system does not package. */
const OTHER = "TOLLGATE_TEST_POSTGRES_BIN";

/** Folder of its programs. Undefined if there is none. */
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

/** Returns false and prints a message if it is missing. Tests that need it are skipped. */
export function hasPostgres(version?: number): boolean {
  if (postgresPrograms(version)) return true;
  console.log(
    `no PostgreSQL${version === undefined ? "" : ` ${version}`} here (Debian: apt-get install postgresql): what needs one is skipped`,
  );
  return false;
}

/**
 * Settings that a test does not need, such as a flush per commit, because no test cuts the power.
 */
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
  await copyEmptyCluster(programs, dir);
  return served({ ...programs, dir, settings, says, env, ready: "ready to accept connections" });
}

/**
 * Copies an empty cluster, which is made once per checkout and version: `initdb` takes a second of
 * CPU time.
 */
async function copyEmptyCluster(programs: Programs, dir: string): Promise<void> {
  const kept = join(checkout, "node_modules/.cache/tests", `postgres-${programs.version}`);
  const copy = (from: string, to: string) => promisify(execFile)("cp", ["-a", from, to]);
  if (existsSync(kept)) return void (await copy(kept, join(dir, "data")));
  const words = ["-U", "tollgate", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  await made(programs, "initdb", dir, words);
  await mkdir(dirname(kept), { recursive: true });
  const fresh = `${kept}.${process.pid}`;
  await copy(join(dir, "data"), fresh);
  // Another process may have made it in the meantime.
  await rename(fresh, kept).catch(() => rm(fresh, { recursive: true, force: true }));
}

interface Programs {
  readonly bin: string;
  readonly version: string;
}

/** Creates the data folder with one of its programs. */
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
  /** Log line that reports the first successful start. */
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
      // A fast shutdown closes the connections, and then ends the server.
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

/** Newer clients support all server versions, and other versions may not include psql. */
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

/** A second server that replicates the first one asynchronously, as fast as it can. */
export async function startReplica(of: Postgres): Promise<Postgres> {
  const programs = postgresPrograms(Number(of.version))!;
  const dir = await folder("replica");
  const words = ["-h", "127.0.0.1", "-p", `${of.port}`, "-U", "tollgate", "-R", "--no-sync"];
  await made(programs, "pg_basebackup", dir, [...words, "-X", "stream", "-c", "fast"]);
  const { settings, says } = of;
  return served({ ...programs, dir, settings, says, ready: "ready to accept read-only" });
}

/** Output of psql, one row per line. */
export async function psql(url: string, text: string): Promise<string> {
  const words = [url, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", text];
  const { stdout } = await promisify(execFile)(psqlProgram(), words);
  return stdout.trim();
}

/** Creates a database on the server of this URL, empty or like `template`. Returns its URL. */
export async function createDatabase(server: string, template = "template1"): Promise<string> {
  const url = new URL(server);
  url.pathname = `/t${randomBytes(6).toString("hex")}`;
  await psql(server, `CREATE DATABASE ${url.pathname.slice(1)} TEMPLATE ${template}`);
  return url.href;
}

/** Value of `store:` in gateway.yaml, in YAML's flow style. */
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
  /** URL of the same database through this pooler. */
  through(url: string): string;
  kill(): void;
}

const BOUNCER = "/usr/sbin/pgbouncer";

/** Returns false and prints a message if it is missing. */
export function hasPgBouncer(): boolean {
  if (existsSync(BOUNCER)) return true;
  console.log("no PgBouncer here (Debian: apt-get install pgbouncer): what needs it is skipped");
  return false;
}

/** A pooler in transaction mode, with few connections to the server. */
export async function startPgBouncer(postgres: Pick<Postgres, "port">): Promise<PgBouncer> {
  const dir = await folder("pgbouncer");
  const port = await freePort();
  const settings = [
    "[databases]",
    // A connection to the server has one user, whichever name a client sends.
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

/** Folder of a user without rights. All users may enter the path to it. */
async function folder(name: string): Promise<string> {
  // Not in the tests' own folder, which may be closed to that user.
  const dir = await mkdtemp(
    join(root ? "/tmp" : (process.env["TMPDIR"] ?? "/tmp"), `tollgate-${name}-`),
  );
  await chmod(dir, 0o700);
  if (root) chownSync(dir, NOBODY, NOBODY);
  return dir;
}

/** A server process that reported itself ready. */
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
    // Only the log of the start is kept, because the rest can be long.
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

/**
 * Kills a process of this test and its children. Each PostgreSQL process has its own group, so no
 * group contains them all.
 */
function familyOf(of: ChildProcess | undefined): readonly number[] {
  if (of?.pid === undefined || of.exitCode !== null) return [];
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === of.pid);
  return [of.pid, ...children];
}

/** The name is in parentheses and may contain spaces. State and parent follow. */
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
    // The process ended in the meantime.
  }
}

/** A free port that is used again after each start. */
