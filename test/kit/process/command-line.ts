// Runs the command line in another process, without a terminal: in a folder of its own, or next to
// a running gateway.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { main } from "../../../src/cli/main.ts";
import type { Daemon } from "./daemon.ts";
import { spawnTollgate, startServe, type ProgramOptions, type ServingProgram } from "./program.ts";

export interface RunResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface TestFolder extends AsyncDisposable {
  readonly path: string;
  write(name: string, text: string): Promise<void>;
  tollgate(
    args: readonly string[],
    more?: { env?: NodeJS.ProcessEnv; input?: string },
  ): Promise<RunResult>;
  /**
   * Runs it in this process, which changes into the folder. Use it if the test needs no separate
   * process.
   */
  said(args: readonly string[]): Promise<RunResult>;
  /** A running gateway. It is killed and its folder removed if it still runs. */
  serve(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<ServingProgram>;
}

export async function createTestFolder(
  files: Readonly<Record<string, string>> = {},
): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), "tollgate-cli-"));
  const running: ServingProgram[] = [];
  const made: TestFolder = {
    path,
    write: (name, text) => writeFile(join(path, name), text),
    tollgate: (args, { env, input } = {}) =>
      input === undefined && args[0] !== "serve"
        ? oneByOne(() => inFolder(path, () => withEnv(env, () => runCliInProcess(args))))
        : ran({ cwd: path, args, env }, { input }),
    said: (args) => oneByOne(() => inFolder(path, () => runCliInProcess(args))),
    async serve(args = [], env) {
      const served = await startServe({ cwd: path, args, env });
      running.push(served);
      return served;
    },
    async [Symbol.asyncDispose]() {
      for (const served of running) served.kill("SIGKILL");
      await rm(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  for (const [name, text] of Object.entries(files)) await made.write(name, text);
  return made;
}

/** Runs it in this process, with a quarter of the work. Returns its output and exit code. */
export async function runCliInProcess(
  argv: readonly string[],
  terminal = false,
): Promise<RunResult> {
  let [out, err] = ["", ""];
  const writes = [
    vi.spyOn(process.stdout, "write").mockImplementation((text) => ((out += text), true)),
    vi.spyOn(process.stderr, "write").mockImplementation((text) => ((err += text), true)),
  ];
  try {
    const code = await main(argv, terminal);
    return { code, out, err };
  } finally {
    for (const write of writes) write.mockRestore();
  }
}

/**
 * Runs a command next to a gateway, in its folder. With `stopAfter`, which is called with all output so far, the command is a program of its own
 * and gets Ctrl-C when `stopAfter` returns true. Otherwise it runs in this process.
 */
export function runTollgate(
  { dir, file }: Pick<Daemon, "file" | "dir">,
  args: readonly string[],
  stopAfter?: (out: string) => boolean,
): Promise<RunResult> {
  const argv = [...args, "-c", file];
  if (stopAfter) return ran({ cwd: dir, args: argv, env: { NO_COLOR: "1" } }, { stopAfter });
  return oneByOne(() => inFolder(dir, () => runCliInProcess(argv)));
}

let last: Promise<unknown> = Promise.resolve();

/** A process has one stdout and one working directory, so commands in it run one after another. */
function oneByOne(run: () => Promise<RunResult>): Promise<RunResult> {
  const next = last.then(run, run);
  last = next.catch(() => {});
  return next;
}

/**
 * Sets environment variables while a command runs. Programs that a test starts have no color
 * either.
 */
async function withEnv(
  env: NodeJS.ProcessEnv = {},
  run: () => Promise<RunResult>,
): Promise<RunResult> {
  const before = { ...process.env };
  Object.assign(process.env, { NO_COLOR: "1" }, env);
  try {
    return await run();
  } finally {
    process.env = before;
  }
}

async function inFolder(dir: string, run: () => Promise<RunResult>): Promise<RunResult> {
  const before = process.cwd();
  process.chdir(dir);
  try {
    return await run();
  } finally {
    process.chdir(before);
  }
}

function ran(
  of: ProgramOptions,
  {
    input = "",
    stopAfter,
  }: { input?: string | undefined; stopAfter?: ((out: string) => boolean) | undefined },
): Promise<RunResult> {
  const child = spawnTollgate(of);
  child.stdin.on("error", () => {}).end(input);
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    if (stopAfter?.(out)) child.kill("SIGINT");
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out, err })));
}

/** A config that needs neither another machine nor a secret. */
export const MINIMAL_CONFIG = `listen: { port: 0 }
store: { use: memory }
frontends: [chat-completions, models]
middleware: [auth]
providers:
  demo: { use: demo }
`;
