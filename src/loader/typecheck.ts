// Checks a plugin's types with the TypeScript that is installed next to it, before its new code is
// loaded. For plugin authors.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { NO_DEBUGGER } from "../lib/disable-debugger.ts";
import { problem, type ProblemText } from "../config/problems.ts";

/** Checks a plugin's files. Undefined if no error was found or types cannot be checked. */
export type TypeChecker = (
  from: string,
  files: readonly string[],
) => Promise<ProblemText | undefined>;

/** Maximum run time of the compiler in milliseconds. After that time, its result is ignored. */
const TIMEOUT_MS = 60_000;
/**
 * Maximum bytes of compiler output that are read. Additional output mostly repeats the same error.
 */
const MAX_OUTPUT_BYTES = 256 * 1024;
/** Options if the plugin has no tsconfig.json. */
const DEFAULT_COMPILER_OPTIONS =
  "--ignoreConfig --target es2024 --module nodenext --strict --skipLibCheck --allowImportingTsExtensions";

const findUpwards = (from: string, path: string): string | undefined => {
  for (let at = from; ; at = dirname(at)) {
    if (existsSync(join(at, path))) return join(at, path);
    if (dirname(at) === at) return undefined;
  }
};

export const typecheckPlugin: TypeChecker = async (from, files) => {
  const [entry = ""] = files;
  const folder = dirname(entry);
  const compiler = findUpwards(folder, "node_modules/typescript/bin/tsc");
  if (compiler === undefined || !/\.[cm]?ts$/.test(extname(entry))) return undefined;
  const config = findUpwards(folder, "tsconfig.json");
  const what =
    config === undefined ? [...DEFAULT_COMPILER_OPTIONS.split(" "), entry] : ["-p", config];
  const cwd = config === undefined ? folder : dirname(config);
  const output = await runCompiler(compiler, [...what, "--noEmit", "--pretty", "false"], cwd);
  const own = new Set(files);
  const wrong = [...output.matchAll(/^(.+?)\((\d+),(\d+)\): error TS\d+: (.+)$/gm)].flatMap(
    ([, file = "", line, column, words]) => {
      const place = realPathOf(resolve(cwd, file));
      return own.has(place) ? [`${place}:${line}:${column}  ${words}`] : [];
    },
  );
  return wrong.length === 0 ? undefined : problem.typesWrong(from, wrong[0]!, wrong.length - 1);
};

function runCompiler(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((done) => {
    let output = "";
    const child = spawn(process.execPath, [NO_DEBUGGER, program, ...args], {
      cwd,
      timeout: TIMEOUT_MS,
      stdio: ["ignore", "pipe", "ignore"],
    });
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      if (output.length < MAX_OUTPUT_BYTES) output += part;
    });
    child.on("error", () => done(""));
    child.on("close", () => done(output));
  });
}

function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
