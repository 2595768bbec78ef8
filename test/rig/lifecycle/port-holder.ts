// Holds the ports of a gateway, as a service manager does: they are open while none serves, what comes meanwhile waits, and each gateway that
// is started is handed them.
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
  /** When the last one that was ended was gone. */
  readonly endedAt: number;
  /** Everything that they wrote. */
  output(): string;
  ask(command: string, input?: JsonObject): Promise<Json>;
  start(): Promise<void>;
  /** Resolves when nothing is left of it. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** By SIGUSR2; resolves when another one serves and nothing is left of the one before. */
  replace(): Promise<void>;
}

/** A line read is a gateway started. The number of the inner shell becomes the program's, which alone may take the sockets. */
const SHELL = `while read -r line; do sh -c 'LISTEN_PID=$$ exec "$@"' sh "$@" </dev/null & done`;
const PROGRAM = [
  join(root, "node_modules/.bin/node"),
  "--conditions=tollgate-source",
  join(root, "src/cli/bin.ts"),
  "serve",
];
/** In which what the end of a process sent to its clients has come. */
const HEARD_MS = 20;

/** Files of its folder, by their names, once its ports are known; `state_dir` is `./state`. `hands`: false, and each opens them anew. */
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
  // The shell has them, and takes no connection.
  await Promise.all(opened.map((server) => new Promise((resolve) => server.close(resolve))));
  let output = "";
  for (const stream of [shell.stdout!, shell.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const state = join(dir, "state");
  const ask: Holder["ask"] = (command, input) => callControl(state, command, input);
  const status = async () => (await ask("status")) as unknown as GatewayStatus;
  let [key, endedAt] = ["", 0];

  /** It is written down a moment after the ports are served. */
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
      // And been read, in a process that has much else to do.
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

/** One whose end its parent has not asked for is over all the same. */
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
