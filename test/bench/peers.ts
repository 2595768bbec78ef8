// Other gateways. Two come from their registries, run as their documentation describes: the first
// run installs them into a temporary folder, and later runs reuse it. Others are started by scripts
// of a folder that the operator names.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, parse } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { ended, NODE, run } from "./process.ts";
import { CHAT, type Target } from "./targets.ts";
import { freePort } from "../kit/process/ports.ts";

/**
 * Neither keeps a ledger in this setup. Portkey checks no key. LiteLLM checks the master key that
 * it requires.
 */
export const peers = async (mock: number): Promise<Target[]> => [
  await portkey(mock),
  await litellm(mock),
];

const PORTKEY = { name: "@portkey-ai/gateway", version: "1.15.2" };
const LITELLM = { name: "litellm[proxy]", version: "1.108.7" };

function installed(command: string, args: readonly string[], cwd: string): void {
  process.stderr.write(`${command} ${args.join(" ")}\n`);
  const done = spawnSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  if (done.status !== 0) throw new Error(`${command} ${args.join(" ")} failed.`);
}

/** Its streams fail with the newest version of its dependency, and work with this one. */
async function portkey(mock: number): Promise<Target> {
  const dir = join(tmpdir(), "tollgate-bench-portkey");
  const entry = join(dir, "node_modules", PORTKEY.name, "build/start-server.js");
  if (!existsSync(entry)) {
    mkdirSync(dir, { recursive: true });
    const dependencies = { [PORTKEY.name]: PORTKEY.version };
    const overrides = { "@hono/node-server": "1.13.7" };
    writeFileSync(
      join(dir, "package.json"),
      JSON.stringify({ private: true, dependencies, overrides }),
    );
    installed("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], dir);
  }
  const port = await freePort();
  const child = run([entry, `--port=${port}`, "--headless"], 0, {
    cwd: dir,
    node: NODE,
    ipc: false,
    env: { ...process.env, TRUSTED_CUSTOM_HOSTS: "localhost,127.0.0.1", NODE_ENV: "production" },
  });
  child.stdout!.resume();
  child.stderr!.resume();
  await up(`http://127.0.0.1:${port}/`);
  return {
    name: "portkey",
    pid: child.pid!,
    port,
    path: CHAT,
    headers: {
      authorization: "Bearer none",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${mock}/v1`,
    },
    prefix: "",
    chatOnly: true,
    checks: "nothing",
    records: "nothing",
    stop: () => ended(child, "SIGKILL"),
  };
}

/** Its proxy, in an environment of its own, with one worker, because every process here has one. */
async function litellm(mock: number): Promise<Target> {
  const dir = join(tmpdir(), "tollgate-bench-litellm");
  const command = join(dir, "bin/litellm");
  if (!existsSync(command)) {
    mkdirSync(dir, { recursive: true });
    installed("python3", ["-m", "venv", dir], dir);
    installed(join(dir, "bin/pip"), ["install", "-q", `${LITELLM.name}==${LITELLM.version}`], dir);
  }
  const config = join(dir, `bench-${mock}.yaml`);
  writeFileSync(
    config,
    `model_list:
  - model_name: "*"
    litellm_params: { model: "openai/*", api_base: "http://127.0.0.1:${mock}/v1", api_key: none }
`,
  );
  const port = await freePort();
  const key = `sk-${randomBytes(16).toString("hex")}`;
  const child = run(["--config", config, "--host", "127.0.0.1", "--port", String(port)], 0, {
    cwd: dir,
    node: command,
    ipc: false,
    env: {
      ...process.env,
      LITELLM_LOG: "ERROR",
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      LITELLM_MASTER_KEY: key,
    },
  });
  child.stdout!.resume();
  child.stderr!.resume();
  await up(`http://127.0.0.1:${port}/health/liveliness`);
  return {
    name: "litellm",
    pid: child.pid!,
    port,
    path: CHAT,
    headers: { authorization: `Bearer ${key}` },
    prefix: "",
    chatOnly: true,
    mostStreams: 50,
    checks: "the master key",
    records: "nothing",
    stop: () => ended(child, "SIGKILL"),
  };
}

/** First line that a start script prints, as JSON. All members are optional. */
interface Announcement {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Prefix of a model's name. */
  readonly prefix?: string;
  /** Path that responds with 200 when the gateway is ready. Default: /health. */
  readonly ready?: string;
  /** Whether it also serves Messages and Responses. */
  readonly allProtocols?: boolean;
  readonly mostStreams?: number;
  readonly checks?: string;
  readonly records?: string;
}

/**
 * Gateways of a folder of start scripts. Each executable file is started with the port on which its
 * gateway must listen, and the URL of the simulated OpenAI API. It prints an announcement and then
 * becomes the gateway (`exec`), so that its CPU time is measured. A script that has no gateway at
 * hand exits with 0 before that, and is skipped.
 */
export async function peersIn(folder: string, mock: number): Promise<Target[]> {
  const targets: Target[] = [];
  for (const file of readdirSync(folder).toSorted()) {
    const script = join(folder, file);
    if (!isExecutable(script)) continue;
    const target = await started(script, mock);
    if (target === undefined) process.stderr.write(`${file}: skipped, it has no gateway here\n`);
    else targets.push(target);
  }
  return targets;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function started(script: string, mock: number): Promise<Target | undefined> {
  const port = await freePort();
  const args = [String(port), `http://127.0.0.1:${mock}/v1`];
  const child = run(args, 0, { node: script, ipc: false });
  child.stderr!.pipe(process.stderr);
  const lines = createInterface({ input: child.stdout! });
  const first = await new Promise<string | undefined>((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve(undefined) : reject(new Error(`${script} exited with ${code}.`)),
    );
  });
  if (first === undefined) return undefined;
  const said = JSON.parse(first) as Announcement;
  await up(`http://127.0.0.1:${port}${said.ready ?? "/health"}`);
  return {
    name: parse(script).name,
    pid: child.pid!,
    port,
    path: said.path ?? CHAT,
    headers: { ...said.headers },
    prefix: said.prefix ?? "",
    chatOnly: said.allProtocols !== true,
    ...(said.mostStreams !== undefined && { mostStreams: said.mostStreams }),
    checks: said.checks ?? "not stated",
    records: said.records ?? "not stated",
    stop: () => ended(child, "SIGKILL"),
  };
}

async function up(address: string): Promise<void> {
  for (let i = 0; i < 3_600; i++) {
    const answers = await fetch(address).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return;
    await sleep(50);
  }
  throw new Error(`Nothing answers at ${address}.`);
}
