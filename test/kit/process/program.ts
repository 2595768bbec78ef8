// Tollgate as a program in a process of its own, in the environment that a test gives it and no other.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "../wait.ts";

export const root = join(import.meta.dirname, "../../..");

/** Which program: the source, or what `npm run build` made of it, which starts in a third of the time. */
const PROGRAMS = {
  source: [
    "--conditions=tollgate-source",
    "--disable-warning=ExperimentalWarning",
    "src/cli/bin.ts",
  ],
  built: ["dist/src/cli/bin.js"],
} as const;

/** `npm test` builds first, and says so. A gateway whose source is changed, or has something loaded into it, is run from source in any case. */
const isBuilt = (env: NodeJS.ProcessEnv = {}): boolean =>
  process.env["TOLLGATE_TESTS"] === "built" && env["NODE_OPTIONS"] === undefined;

/** What V8 has compiled of it is kept for the next one. It is told other things there than where tests run, so it has a place of its own. */
export const COMPILE_CACHE_ENV = {
  NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tests/programs"),
};

let started = 0;
/** How many programs this process has started, for the cost of a test file. */
export const startedPrograms = (): number => started;

export interface ProgramOptions {
  cwd: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv | undefined;
  built?: boolean | undefined;
  /** Another checkout of it; this one when absent. */
  root?: string | undefined;
}

export function spawnTollgate({
  cwd,
  args,
  env,
  root: from = root,
  built = from === root && isBuilt(env),
}: ProgramOptions): ChildProcessWithoutNullStreams {
  const words = PROGRAMS[built ? "built" : "source"].map((word) =>
    word.startsWith("-") ? word : join(from, word),
  );
  started++;
  return spawn(join(root, "node_modules/.bin/node"), [...words, ...args], {
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

/** A line of the log. */
export interface ParsedLogLine {
  level: string;
  msg: string;
  [field: string]: unknown;
}

/** A gateway that serves, seen from outside. */
export interface ServingProgram {
  readonly url: string;
  readonly pid: number;
  /** What it has logged so far. */
  readonly log: readonly ParsedLogLine[];
  /** The first line that is so, or says so, now or later. */
  line(is: RegExp | ((line: ParsedLogLine) => boolean)): Promise<ParsedLogLine>;
  /** Everything it wrote, to the letter. */
  output(): string;
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM unless told, and the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Sends a signal until the program has ended. A second one shortly after the first is taken for the same one. */
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

/** `tollgate serve` on a free port, as soon as it listens. */
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
  // What it said last is here only then.
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
    // What does not come up is not left behind.
    kill("SIGKILL");
    throw problem;
  });
  const seen = { url: String(url), pid: child.pid!, log, line, exit, kill, stop };
  return { ...seen, output: () => output };
}
