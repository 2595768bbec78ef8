// The real daemon in a folder of its own, as an operator would run it: a gateway.yaml, a process, a port.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Json, JsonObject } from "tollgate/plugin";
import { askControl } from "../src/gateway/control/asking.ts";
import { until } from "./kit/waits.ts";

const ROOT = join(import.meta.dirname, "..");
/** What hangs: a machine that is only busy starts a daemon in less. */
const READY_MS = 60_000;

export interface Line {
  level: string;
  msg: string;
  [field: string]: unknown;
}

export interface Daemon extends AsyncDisposable {
  readonly url: string;
  /** The first key. */
  readonly key: string;
  readonly dir: string;
  /** The same as `dir`. */
  readonly folder: string;
  readonly file: string;
  readonly stateDir: string;
  readonly pid: number;
  /** What it has logged so far. */
  readonly log: readonly Line[];
  /** The same as `log`. */
  readonly logs: readonly Line[];
  /** The first line that is so, now or later. */
  line(is: (line: Line) => boolean): Promise<Line>;
  /** Its control socket. */
  ask(command: string, input?: JsonObject): Promise<Json>;
  /** Everything it wrote, to the letter. */
  output(): string;
  /** Exit code; undefined while it runs. */
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
  /** Rewrites gateway.yaml, which the daemon watches. */
  write(yaml: string): Promise<void>;
  rewrite(yaml: string): Promise<void>;
  /** SIGTERM unless told, and the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface DaemonOptions {
  yaml: string;
  /** More under `listen:`, in YAML's flow style. */
  listen?: string;
  env?: Record<string, string>;
  files?: Record<string, string>;
  /** Keep an earlier one's folder. */
  dir?: string;
  args?: readonly string[];
  /** What `npm run build` made, which starts in two thirds of the time. */
  built?: boolean;
}

export async function startGateway(of: DaemonOptions): Promise<Daemon> {
  const dir = of.dir ?? (await mkdtemp(join(tmpdir(), "tollgate-")));
  const file = join(dir, "gateway.yaml");
  const told = (yaml: string) => (of.listen ? `listen: { ${of.listen} }\n${yaml}` : yaml);
  await writeFile(file, told(of.yaml));
  for (const [name, text] of Object.entries(of.files ?? {})) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  const child = spawn(
    join(ROOT, "node_modules/.bin/node"),
    [
      ...(of.built
        ? [join(ROOT, "dist/src/cli/bin.js")]
        : ["--conditions=tollgate-source", join(ROOT, "src/cli/bin.ts")]),
      "serve",
      "-c",
      file,
      "--port",
      "0",
      ...(of.args ?? []),
    ],
    {
      cwd: dir,
      env: { PATH: process.env["PATH"] ?? "", HOME: dir, ...of.env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  const log: Line[] = [];
  let rest = "";
  let listening: (line: Line) => void = () => {};
  const ready = new Promise<Line>((resolve) => (listening = resolve));
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    rest += text;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      const text = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (!text.startsWith("{")) continue;
      const line = JSON.parse(text) as Line;
      log.push(line);
      if (line.msg === "listening") listening(line);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exit = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const late = new AbortController();
  const line = await Promise.race([
    ready,
    exit.then(({ code }) => Promise.reject(new Error(`the daemon ended with ${code}:\n${output}`))),
    new Promise<never>((_, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the daemon was not ready:\n${output}`)),
        READY_MS,
      );
      late.signal.addEventListener("abort", () => clearTimeout(timer));
    }),
  ]).finally(() => late.abort());
  const stateDir = String(line["stateDir"]);
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    if (child.exitCode === null) child.kill(signal);
    return (await exit).code;
  };
  return {
    url: String(line["url"]),
    key: await readFile(join(stateDir, "first-key"), "utf8").then(
      (text) => text.trim(),
      () => "",
    ),
    dir,
    folder: dir,
    file,
    stateDir,
    pid: child.pid!,
    log,
    logs: log,
    async line(is) {
      await until(
        () => log.some(is),
        () => `a line in\n${output}`,
      );
      return log.find(is)!;
    },
    ask: (command, input) => askControl(stateDir, command, input),
    output: () => output,
    exit,
    kill: (signal) => void child.kill(signal),
    write: (yaml) => writeFile(file, told(yaml)),
    rewrite: (yaml) => writeFile(file, told(yaml)),
    stop,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exit;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
