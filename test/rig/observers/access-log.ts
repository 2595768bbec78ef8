// The access log under load: thousands of requests with forged content, two processes, a file that
// is renamed during writes, and a second one on a disk that is soon full. Each request is one line,
// and the sums of the lines equal the ledger's.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { type ChangedSource, mutantOf, preloaded } from "../mutants/changed-source.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

/** Planted defect of the log, which must be found. */
const MUTANTS = {
  // The first line of a batch is lost.
  forgetful: {
    in: "plugins/observers/access-log/output.ts",
    line: "this.#writeBytes(Buffer.from(text), lines)",
    instead:
      "this.#writeBytes(Buffer.from(text.slice(text.indexOf(String.fromCharCode(10)) + 1)), lines)",
  },
  // Client text ends its own value.
  forging: {
    in: "plugins/observers/access-log/fields.ts",
    line: "NO_ESCAPES.test(text)\n    ?",
    instead: "true ?",
  },
  // One request's cost is written for similar later ones.
  alike: {
    in: "plugins/observers/access-log/fields.ts",
    line: '  "cost_usd",\n  "ms",',
    instead: '  "ms",',
  },
  // A renamed file is still written.
  stuck: {
    in: "plugins/observers/access-log/output.ts",
    line: "await this.#file.close();\n      this.#file = other;",
    instead: "await other.close();",
  },
  // Lines lost on a full disk are not reported.
  silent: {
    in: "plugins/observers/access-log/output.ts",
    line: "this.#lost += lost;",
    instead: "this.#lost += 0 * lost;",
  },
} as const satisfies Record<string, ChangedSource>;

interface AccessLogOptions {
  readonly requests: number;
  /** Number of requests between renames. */
  readonly every: number;
  readonly seed: number;
  readonly mutant?: keyof typeof MUTANTS | undefined;
}

const yaml = (url: string, full: string) => `workers: 2
frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-team] } }]
store: { use: sqlite, with: { durability: process } }
observers:
  - { use: access-log, with: { file: access.log } }
  - { use: access-log, with: { file: "${full}" } }
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k, list_models: false }
    models: { m: { price: { input: 3.001, output: 15.007 } } }
  bad: { use: openai-compatible, with: { base_url: "${url}/bad", api_key: k, list_models: false } }
models:
  fast: [bad/m, up/m]
`;

/** Time in which every process notices a rename. */
const MOVED_MS = 1_200;
const AFTER = 20;
const STILL_LOOKS = 30;

type Said = Record<string, unknown> & { readonly id: string };

/** Header content that looks like a line of its own. */
const FORGED = ['x","forged":"1', '{"forged":1}', "a\tb\u0085{\u009b}", "forged=1", "\u00ff\u00fe"];

const agent = new Agent({ keepAlive: true, maxSockets: 32 });

function ask(at: Daemon, chanced: Chance): Promise<void> {
  const model = chanced.one(["up/m", "up/m", "fast", "nowhere/m", 'up/m\n{"forged":1}']);
  const body = JSON.stringify({
    model,
    stream: chanced.often(0.3),
    messages: [{ role: "user", content: "Hello. ".repeat(1 + chanced.below(20)) }],
  });
  const headers = {
    "content-type": "application/json",
    authorization: `Bearer ${chanced.often(0.05) ? "tg_made_up" : at.key}`,
    "x-team": chanced.one(FORGED),
    "x-request-id": chanced.one(FORGED),
  };
  return new Promise((resolve, reject) => {
    const req = request(
      `${at.url}/v1/chat/completions`,
      { agent, method: "POST", headers },
      (res) => res.resume().once("end", resolve),
    );
    req.once("error", reject).end(body);
  });
}

/**
 * Sends all requests, and renames the file repeatedly. Every other time, the gateway is not
 * notified.
 */
async function load(at: Daemon, path: string, of: AccessLogOptions): Promise<number> {
  const chanced = createChance(of.seed);
  let [next, renamed] = [0, 0];
  const hand = async () => {
    while (next < of.requests) {
      if (++next % of.every === 0 && existsSync(path)) {
        renameSync(path, `${path}.${++renamed}`);
        if (renamed % 2 === 0) at.kill("SIGHUP");
        else await sleep(MOVED_MS);
      }
      await ask(at, chanced);
    }
  };
  await ask(at, chanced);
  await sleep(500);
  await Promise.all(Array.from({ length: 24 }, hand));
  return renamed;
}

/**
 * After a rename, every process writes to the new file. Returns the number of requests until then.
 */
async function followed(at: Daemon, path: string, wrong: string[]): Promise<number> {
  const chanced = createChance(1);
  renameSync(path, `${path}.last`);
  at.kill("SIGHUP");
  await sleep(MOVED_MS);
  for (let i = 0; i < AFTER; i++) await ask(at, chanced);
  const there = () => (existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0);
  for (let i = 0; i < 20 && there() < AFTER; i++) await sleep(100);
  if (there() < AFTER) wrong.push(`the file under its name has ${there()} lines of ${AFTER}`);
  return AFTER;
}

/** When all lines exist, or no more arrive. */
async function standStill(folder: string, asked: number): Promise<void> {
  for (let [i, count] = [0, 0]; i < STILL_LOOKS && count < asked; i++) {
    await sleep(100);
    const now = linesIn(folder).length;
    if (now !== count) i = 0;
    count = now;
  }
}

const linesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith("access.log"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1));

function saidIn(folder: string, wrong: string[]): Said[] {
  return linesIn(folder).flatMap((line) => {
    try {
      return [JSON.parse(line) as Said];
    } catch {
      wrong.push(`no line of JSON: ${line.slice(0, 200)}`);
      return [];
    }
  });
}

/**
 * Space for a few hundred lines, if this user may mount. Otherwise a disk that is full from the
 * start.
 */
function smallDisk(): { file: string; folder: string | undefined } {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-small-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "tmpfs", dir], { stdio: "ignore" });
    return { file: join(dir, "access.log"), folder: dir };
  } catch {
    rmdirSync(dir);
    return { file: "/dev/full", folder: undefined };
  }
}

function unmount(folder: string): void {
  execFileSync("umount", [folder]);
  rmdirSync(folder);
}

const nano = (said: unknown): bigint => {
  const [front = "0", behind = ""] = String(said ?? "0").split(".");
  return BigInt(front) * 1_000_000_000n + BigInt(behind.padEnd(9, "0"));
};

interface Ledger {
  calls: number;
  costNano: string;
  usage: { input: number; output: number };
}

function judge(lines: readonly Said[], ledger: Ledger, asked: number): string[] {
  const wrong: string[] = [];
  const sum = (name: string) =>
    lines.reduce((all, line) => all + ((line[name] as number | undefined) ?? 0), 0);
  const same = (what: string, of: unknown, is: unknown) =>
    void (String(of) === String(is) || wrong.push(`${what}: ${String(of)}, not ${String(is)}`));
  same("lines", lines.length, asked);
  same("requests", new Set(lines.map(({ id }) => id)).size, asked);
  // A failed call is no call in the sums.
  const fell = lines.filter((line) => line["fallback"] === true).length;
  same("attempts", sum("attempts") - fell, ledger.calls);
  same("input", sum("input"), ledger.usage.input);
  same("output", sum("output"), ledger.usage.output);
  const cost = lines.reduce((all, line) => all + nano(line["cost_usd"]), 0n);
  same("cost", cost, ledger.costNano);
  same("forged", lines.filter((line) => "forged" in line).length, 0);
  return wrong;
}

export async function accessLog(
  of: AccessLogOptions,
  tell: (line: string) => void,
): Promise<RigResult> {
  const up = await startUpstream({
    // No two requests should share one.
    "POST /v1/chat/completions": (asked) =>
      say("Hello there.")
        .usage({ input: 11 + (asked.number % 13), output: 1 + (asked.number % 7) })
        .toResponse(asked),
    "POST /bad/chat/completions": jsonResponse({ error: { message: "Busy." } }, 503),
  });
  const disk = smallDisk();
  const env = of.mutant && preloaded(MUTANTS[of.mutant]);
  const at = await startDaemon({ yaml: yaml(up.url, disk.file), ...(env && { env }) });
  try {
    const folder = at.dir;
    const path = join(folder, "access.log");
    const renamed = await load(at, path, of);
    tell(`${of.requests} asked, the file was renamed ${renamed} times`);
    const wrong: string[] = [];
    const asked = of.requests + 1 + (await followed(at, path, wrong));
    await standStill(folder, asked);
    const { total } = (await at.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: Ledger;
    };
    const { written, lost } = (await at.ask("observers.access-log-2/counts")) as unknown as {
      written: number;
      lost: number;
    };
    wrong.push(...judge(saidIn(folder, wrong), total, asked));
    if (lost === 0 || written + lost !== asked)
      wrong.push(`on the full disk ${written} written and ${lost} lost are not ${asked}`);
    if (disk.folder !== undefined) {
      const there = linesIn(disk.folder);
      if (there.length !== written) wrong.push(`${there.length} lines there, ${written} written`);
      saidIn(disk.folder, wrong);
    }
    return { wrong, counts: { requests: asked, renamed, lost }, seed: of.seed };
  } finally {
    await at[Symbol.asyncDispose]();
    await up.close();
    if (disk.folder !== undefined) unmount(disk.folder);
  }
}

export const rig: Rig = {
  options: { requests: 10_000, every: 900, seed: 1, mutant: "" },
  run: ({ requests, every, seed, mutant }, tell) =>
    accessLog(
      {
        requests: Number(requests),
        every: Number(every),
        seed: Number(seed),
        mutant: mutantOf(MUTANTS, mutant),
      },
      tell,
    ),
};
