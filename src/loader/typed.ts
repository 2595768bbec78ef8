// For an author: what the TypeScript that lies beside it says of its types, before its new code is taken.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { NO_DEBUGGER } from "../lib/debugger.ts";
import { problem, type ProblemText } from "../config/problems.ts";

/** Of a plugin's files; undefined: nothing is wrong, or nothing can be said. */
export type JudgeTypes = (
  from: string,
  files: readonly string[],
) => Promise<ProblemText | undefined>;

/** A compiler that takes longer says nothing. */
const LONGEST_MS = 60_000;
/** Of all that it says: the rest is the same mistake again. */
const MOST_BYTES = 256 * 1024;
/** Without a tsconfig.json of its own. */
const USUAL =
  "--ignoreConfig --target es2024 --module nodenext --strict --skipLibCheck --allowImportingTsExtensions";

const up = (from: string, path: string): string | undefined => {
  for (let at = from; ; at = dirname(at)) {
    if (existsSync(join(at, path))) return join(at, path);
    if (dirname(at) === at) return undefined;
  }
};

export const typesBeside: JudgeTypes = async (from, files) => {
  const [entry = ""] = files;
  const folder = dirname(entry);
  const compiler = up(folder, "node_modules/typescript/bin/tsc");
  if (compiler === undefined || !/\.[cm]?ts$/.test(extname(entry))) return undefined;
  const config = up(folder, "tsconfig.json");
  const what = config === undefined ? [...USUAL.split(" "), entry] : ["-p", config];
  const cwd = config === undefined ? folder : dirname(config);
  const said = await outputOf(compiler, [...what, "--noEmit", "--pretty", "false"], cwd);
  const own = new Set(files);
  const wrong = [...said.matchAll(/^(.+?)\((\d+),(\d+)\): error TS\d+: (.+)$/gm)].flatMap(
    ([, file = "", line, column, words]) => {
      const place = real(resolve(cwd, file));
      return own.has(place) ? [`${place}:${line}:${column}  ${words}`] : [];
    },
  );
  return wrong.length === 0 ? undefined : problem.typesWrong(from, wrong[0]!, wrong.length - 1);
};

function outputOf(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((done) => {
    let said = "";
    const child = spawn(process.execPath, [NO_DEBUGGER, program, ...args], {
      cwd,
      timeout: LONGEST_MS,
      stdio: ["ignore", "pipe", "ignore"],
    });
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      if (said.length < MOST_BYTES) said += part;
    });
    child.on("error", () => done(""));
    child.on("close", () => done(said));
  });
}

function real(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
