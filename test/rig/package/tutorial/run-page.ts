// Runs the page in an isolated environment: an empty home directory and its own network. Prints the
// result as JSON.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CHECKS } from "./checks.ts";
import { stepsOf } from "./page.ts";
import { manifestOf, registry } from "./registry.ts";
import { shell } from "./shell.ts";

export interface Played {
  readonly steps: readonly {
    readonly name: string;
    readonly seconds: number;
    readonly lines: number;
  }[];
  readonly wrong: readonly string[];
  readonly streams: { readonly asked: number; readonly over: number };
}

const STREAMS = 5;
/** Half a minute: longer than an upgrade takes. */
const WORDS = Array.from({ length: 600 }, (_, i) => i).join(" ");

interface Given {
  readonly folder: string;
  readonly page: string;
  readonly tarballs: readonly [string, string];
}

async function play({ folder, page, tarballs: [last, next] }: Given): Promise<Played> {
  await using npm = await registry();
  npm.publish(last);
  const versions = [manifestOf(last).version, manifestOf(next).version] as const;
  const [home, bin] = [join(folder, "home"), join(folder, "bin")];
  mkdirSync(home);
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, "node"));
  const others = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((path) => !path.includes("node_modules"));
  const env = {
    HOME: home,
    PATH: [bin, ...others].join(delimiter),
    LANG: "C.UTF-8",
    npm_config_registry: npm.url,
  };
  const gate = join(home, "gate");
  const steps: { name: string; seconds: number; lines: number }[] = [];
  const wrong: string[] = [];
  const stay: ChildProcess[] = [];
  let streams: Promise<boolean>[] = [];
  let begun = 0;
  using terminal = shell(home, env);
  try {
    for (const { name, text, stays } of stepsOf(page)) {
      if (stays) {
        const began = performance.now();
        const child = spawn("bash", ["-c", text], {
          cwd: gate,
          env,
          stdio: "ignore",
          detached: true,
        });
        stay.push(child);
        await ready(text, child);
        steps.push({ name, seconds: (performance.now() - began) / 1000, lines: 1 });
        continue;
      }
      if (name === "Upgrade without dropping a stream") {
        npm.publish(next);
        const { output } = await terminal.type('echo "$KEY"');
        streams = Array.from({ length: STREAMS }, () => stream(output.trim()));
        begun = streams.length;
      }
      const typed = await terminal.type(text.trimEnd());
      steps.push({ name, seconds: typed.seconds, lines: text.trimEnd().split("\n").length });
      const check = CHECKS[name];
      const found = check
        ? await check({ gate, versions }, typed)
        : ["the rig does not know this step"];
      for (const words of [
        ...typed.failed.map((words) => `failed: ${words}\n${typed.output}`),
        ...found,
      ])
        wrong.push(`${name}: ${words}`);
      if (typed.failed.length > 0 && name === "Install Tollgate") break;
    }
    for (const name of Object.keys(CHECKS))
      if (!steps.some((step) => step.name === name)) wrong.push(`the page has no step "${name}"`);
    const whole = await Promise.all(streams);
    const cut = whole.filter((is) => !is).length;
    if (cut > 0) wrong.push(`${cut} of ${begun} streams were cut by the upgrade`);
    return { steps, wrong, streams: { asked: begun, over: begun - cut } };
  } finally {
    const pids = ["gateway.yaml", "elsewhere/gateway.yaml"].map((file) => pidOf(gate, file, env));
    for (const pid of [...pids, ...stay.map((child) => -(child.pid ?? 0))]) end(pid);
  }
}

/** Undefined if none runs. */
function pidOf(cwd: string, file: string, env: NodeJS.ProcessEnv): number | undefined {
  const { stdout } = spawnSync("npx", ["tollgate", "status", "--json", "-c", file], {
    cwd,
    env,
    encoding: "utf8",
  });
  return Number(/"pid": ?(\d+)/.exec(stdout ?? "")?.[1]) || undefined;
}

function end(pid: number | undefined): void {
  if (!pid) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

const MOST_MS = 120_000;

async function ready(command: string, child: ChildProcess): Promise<void> {
  const port = /--port (\d+)/.exec(command)?.[1] ?? "8787";
  for (const until = Date.now() + MOST_MS; Date.now() < until; await sleep(50)) {
    if (child.exitCode !== null) throw new Error(`${command.trim()} ended with ${child.exitCode}`);
    const found = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (found?.status === 200) return;
  }
  throw new Error(`${command.trim()} does not answer at ${port}`);
}

/** Whether it was complete. */
async function stream(key: string): Promise<boolean> {
  try {
    const res = await fetch("http://127.0.0.1:8787/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model: "demo/slow",
        stream: true,
        messages: [{ role: "user", content: WORDS }],
      }),
    });
    return (await res.text()).includes("data: [DONE]");
  } catch {
    return false;
  }
}

const given = JSON.parse(process.argv[2] ?? "{}") as Given;
const played = await play(given).catch((error: Error): Played => ({
  steps: [],
  wrong: [String(error.stack)],
  streams: { asked: 0, over: 0 },
}));
process.stdout.write(`${JSON.stringify(played)}\n`);
process.exit(0);
