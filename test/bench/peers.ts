// Other gateways, from their registries, run as their documentation describes. The first run
// installs them into a temporary folder, and later runs reuse it.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
