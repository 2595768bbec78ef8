// Holds the ports of a gateway, like a service manager: they stay open without a gateway, new
// connections wait, and each started gateway receives them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json, JsonObject } from "tollgate/plugin";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { COMPILE_CACHE_ENV, root } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";

export interface Holder extends AsyncDisposable {
  readonly ports: readonly number[];
  readonly dir: string;
  /** The first key. */
  readonly key: string;
  /** Time at which the last ended one had exited. */
  readonly endedAt: number;
  /** All of their output. */
  output(): string;
  ask(command: string, input?: JsonObject): Promise<Json>;
  start(): Promise<void>;
  /** Resolves when its processes have exited. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** By SIGUSR2. Resolves when another one serves and the previous one has exited. */
  replace(): Promise<void>;
}

/**
 * Each line on stdin starts a gateway. The PID of the inner shell becomes the program's, which
 * alone may take the sockets.
 */
const SHELL = `while read -r line; do sh -c 'LISTEN_PID=$$ exec "$@"' sh "$@" </dev/null & done`;
const PROGRAM = [
  join(root, "node_modules/.bin/node"),
  "--conditions=tollgate-source",
  join(root, "src/cli/bin.ts"),
  "serve",
];
/** Time in which the last bytes of an exited process reach its clients. */
const HEARD_MS = 20;

/**
 * Files of its folder, by name, once its ports are known. `state_dir` is `./state`. `hands`: if
 * false, each process opens the ports itself.
 */
export async function startPortHolder(of: {
  ports: number;
  files: (ports: readonly number[]) => Readonly<Record<string, string>>;
  hands?: boolean;
}): Promise<Holder> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-held-"));
  const opened = await Promise.all(Array.from({ length: of.ports }, open));
  const ports = opened.map((server) => (server.address() as AddressInfo).port);
  for (const [name, text] of Object.entries(of.files(ports)))
    await writeFile(join(dir, name), text);
  const handed = of.hands === false ? [] : opened.map(descriptor);
  const shell = spawn("sh", ["-c", SHELL, "sh", ...PROGRAM], {
    cwd: dir,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: dir,
      ...COMPILE_CACHE_ENV,
      ...(handed.length > 0 && {
        LISTEN_FDS: String(handed.length),
        LISTEN_FDNAMES: handed.map(() => "clients").join(":"),
      }),
    },
    stdio: ["pipe", "pipe", "pipe", ...handed],
  });
  // The shell holds them, and accepts no connection.
  await Promise.all(opened.map((server) => new Promise((resolve) => server.close(resolve))));
  let output = "";
  for (const stream of [shell.stdout!, shell.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const state = join(dir, "state");
  const ask: Holder["ask"] = (command, input) => callControl(state, command, input);
  const status = async () => (await ask("status")) as unknown as GatewayStatus;
  let [key, endedAt] = ["", 0];

  /** It is written shortly after the ports are served. */
  async function firstKey(): Promise<string> {
    const read = () => readFile(join(state, "first-key"), "utf8").catch(() => "");
    await until(
      async () => (await read()) !== "",
      () => `there is a first key; it said ${output.slice(-3_000)}`,
    );
    return (await read()).trim();
  }

  async function start(): Promise<void> {
    shell.stdin!.write("start\n");
    await until(
      () =>
        status().then(
          ({ state }) => state === "ready",
          () => false,
        ),
      () => `it serves; it said ${output.slice(-3_000)}`,
    );
    key ||= await firstKey();
  }

  const all = async (): Promise<readonly number[]> => {
    const { pid, workers = [] } = await status();
    return [pid, ...workers.map((worker) => worker.pid)];
  };
  const gone = (those: readonly number[]) =>
    until(
      async () => (await Promise.all(those.map(lives))).every((one) => !one),
      () => `${those.join(", ")} end; they said ${output.slice(-3_000)}`,
    );

  return {
    ports,
    dir,
    get key() {
      return key;
    },
    get endedAt() {
      return endedAt;
    },
    output: () => output,
    ask,
    start,
    async end(signal) {
      const those = await all();
      process.kill(those[0]!, signal);
      await gone(those);
      await sleep(HEARD_MS);
      // And read, in a process with much other work.
      for (let n = 0; n < 3; n++) await new Promise(setImmediate);
      endedAt = performance.now();
    },
    async replace() {
      const those = await all();
      process.kill(those[0]!, "SIGUSR2");
      await until(
        () =>
          status().then(
            ({ pid }) => pid !== those[0],
            () => false,
          ),
        () => `another one serves; it said ${output.slice(-3_000)}`,
      );
      await gone(those);
    },
    async [Symbol.asyncDispose]() {
      shell.stdin!.end();
      const last = await all().catch(() => []);
      for (const pid of last) kill(pid);
      await gone(last);
      shell.kill("SIGKILL");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function open(): Promise<Server> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const descriptor = (server: Server): number =>
  (server as unknown as { _handle: { fd: number } })._handle.fd;

/** A process whose exit its parent has not collected has exited nevertheless. */
async function lives(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return text !== "" && !/\) Z /.test(text);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
