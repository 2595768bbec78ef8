// A real Prometheus with its own checker, from Debian, and the strict OpenMetrics parser in Python.
// Missing ones are installed first.
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../kit/process/ports.ts";

const run = promisify(execFile);
const INSTALL_MS = 600_000;
const PARSER = "prometheus_client==0.21.1";
const FOLDER = join(tmpdir(), "tollgate-clients", PARSER.replace("==", "-"));
const PYTHON = join(FOLDER, "bin/python");

const isThere = (program: string, ...args: readonly string[]): Promise<boolean> =>
  run(program, args).then(
    () => true,
    () => false,
  );

async function packages(...names: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update", "-qq"], { timeout: INSTALL_MS });
  await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...names], {
    timeout: INSTALL_MS,
    env,
  });
}

export async function install(): Promise<void> {
  if (!(await isThere("promtool", "--version"))) await packages("prometheus");
  if (existsSync(join(FOLDER, "whole"))) return;
  if (!(await isThere("python3", "-c", "import ensurepip, venv")))
    await packages("python3", "python3-venv");
  await mkdir(FOLDER, { recursive: true });
  await run("python3", ["-m", "venv", FOLDER], { timeout: INSTALL_MS });
  await run(PYTHON, ["-m", "pip", "install", "--quiet", "--no-input", PARSER], {
    timeout: INSTALL_MS,
  });
  await writeFile(join(FOLDER, "whole"), "");
}

/** Errors of a program for its input. None: it accepts it. */
function judged(
  program: string,
  args: readonly string[],
  input: string,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args);
    let said = "";
    for (const out of [child.stdout, child.stderr])
      out.on("data", (data: Buffer) => (said += data.toString()));
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code) => resolve(code === 0 ? undefined : `${program}: ${said.trim()}`));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

export const checkText = (text: string) => judged("promtool", ["check", "metrics"], text);
export const checkRules = (file: string) => judged("promtool", ["check", "rules", file], "");
export const checkConfig = (file: string) =>
  judged("promtool", ["check", "config", "--syntax-only", file], "");
export const testRules = (file: string) => judged("promtool", ["test", "rules", file], "");
export const checkOpenMetrics = (text: string) =>
  judged(
    PYTHON,
    [
      "-c",
      "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read; assert len(list(read(sys.stdin.read()))) > 10",
    ],
    text,
  );

export interface Answer {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

export interface Prometheus extends AsyncDisposable {
  /** Rejects if it does not accept the expression. */
  query(expression: string): Promise<readonly Answer[]>;
}

/** Scrapes one gateway every second. */
export async function prometheus(dir: string, target: string, token: string): Promise<Prometheus> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "token"), token, { mode: 0o600 });
  await writeFile(
    join(dir, "prometheus.yml"),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
scrape_configs:
  - job_name: tollgate
    authorization: { credentials_file: ${join(dir, "token")} }
    static_configs: [{ targets: ["${target}"] }]
`,
  );
  const port = await freePort();
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(dir, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(dir, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 400; i++) {
    if (
      await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break;
    await sleep(50);
  }
  return {
    async query(expression) {
      const body = new URLSearchParams({ query: expression });
      const answer = await fetch(`${url}/api/v1/query`, { method: "POST", body });
      const { status, error, data } = (await answer.json()) as {
        status: string;
        error?: string;
        data: { result: readonly Answer[] };
      };
      if (status !== "success") throw new Error(`${expression}: ${error}`);
      return data.result;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await gone;
    },
  };
}
