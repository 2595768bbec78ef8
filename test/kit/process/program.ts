// Runs Tollgate as a program in a process of its own, with the environment of the test and no
// other.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "../wait.ts";

export const root = join(import.meta.dirname, "../../..");

/**
 * The program: the source, or the output of `npm run build`, which starts in a third of the time.
 */
const PROGRAMS = {
  source: [
    "--conditions=tollgate-source",
    "--disable-warning=ExperimentalWarning",
    "src/cli/bin.ts",
  ],
  built: ["dist/src/cli/bin.js"],
} as const;

/**
 * `npm test` builds first and sets this variable. A gateway with changed source or preloaded code
 * always runs from source.
 */
const isBuilt = (env: NodeJS.ProcessEnv = {}): boolean =>
  process.env["TOLLGATE_TESTS"] === "built" && env["NODE_OPTIONS"] === undefined;

/**
 * Compile cache of V8, for the next process. It differs from the cache of the test processes, which
 * have other flags.
 */
export const COMPILE_CACHE_ENV = {
  NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tests/programs"),
};

let started = 0;
/** Number of programs that this process has started, for the cost of a test file. */
export const startedPrograms = (): number => started;

export interface ProgramOptions {
  cwd: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv | undefined;
  built?: boolean | undefined;
  /** Another checkout. Default: this one. */
  root?: string | undefined;
}

/** Arguments of Node that start Tollgate from this checkout. */
export const programArgs = (from = root, built = from === root && isBuilt()): readonly string[] =>
  PROGRAMS[built ? "built" : "source"].map((word) =>
    word.startsWith("-") ? word : join(from, word),
  );

export function spawnTollgate({
  cwd,
  args,
  env,
  root: from = root,
  built = from === root && isBuilt(env),
}: ProgramOptions): ChildProcessWithoutNullStreams {
  started++;
  return spawn(join(root, "node_modules/.bin/node"), [...programArgs(from, built), ...args], {
    cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: cwd,
      TMPDIR: process.env["TMPDIR"],
      ...COMPILE_CACHE_ENV,
      ...env,
    },
  });
}

/** One line of the log. */
export interface ParsedLogLine {
  level: string;
  msg: string;
  [field: string]: unknown;
}

/** A running gateway, seen from outside. */
export interface ServingProgram {
  readonly url: string;
  readonly pid: number;
  /** Its log lines so far. */
  readonly log: readonly ParsedLogLine[];
  /** Resolves to the first line, past or future, that matches. */
  line(is: RegExp | ((line: ParsedLogLine) => boolean)): Promise<ParsedLogLine>;
  /** Its complete output. */
  output(): string;
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
  /** Ends it with SIGTERM by default, and resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/**
 * Sends a signal until the program has ended. A second signal shortly after the first is ignored as
 * a repeat.
 */
export async function killUntilExit(
  { kill, exit }: Pick<ServingProgram, "kill" | "exit">,
  signal: NodeJS.Signals,
) {
  let over = false;
  void exit.then(() => (over = true));
  await until(
    () => {
      if (!over) kill(signal);
      return over;
    },
    () => `an end after ${signal}`,
  );
  return exit;
}

/** Starts `tollgate serve` on a free port, and resolves when it listens. */
export async function startServe({ args, ...of }: ProgramOptions): Promise<ServingProgram> {
  const child = spawnTollgate({ ...of, args: ["serve", "--port", "0", ...args] });
  let [output, rest, over] = ["", "", false];
  const log: ParsedLogLine[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith("{")) log.push(JSON.parse(line) as ParsedLogLine);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  // The last output has arrived only then.
  child.once("close", () => (over = true));
  const exit = once(child, "exit").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  const line: ServingProgram["line"] = async (is) => {
    const found = () => log.find((one) => (is instanceof RegExp ? is.test(one.msg) : is(one)));
    await until(
      () => found() !== undefined || over,
      () => `a line in\n${output}`,
    );
    return found() ?? Promise.reject(new Error(`It ended with ${child.exitCode}:\n${output}`));
  };
  const kill = (signal: NodeJS.Signals) => void child.kill(signal);
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    kill(signal);
    return (await exit).code;
  };
  const { url } = await line(/^listening$/).catch((problem: unknown) => {
    // A gateway that fails to start is cleaned up.
    kill("SIGKILL");
    throw problem;
  });
  const seen = { url: String(url), pid: child.pid!, log, line, exit, kill, stop };
  return { ...seen, output: () => output };
}
