// Three times as many requests as the gateway can serve: it serves as many and as fast as before,
// and rejects the rest immediately. Then one key sends a hundred times its limit, and another key
// is not affected.
import { execFile } from "node:child_process";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { say, startUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import type { Rig, RigResult } from "../rig.ts";
import { createChance } from "../rig.ts";
import {
  askHealth,
  askOnce,
  runClosedLoop,
  isGood,
  runOpenLoop,
  percentile,
  type TimedResponse,
} from "./load-generator.ts";

/** Duration of the upstream's response. */
const UPSTREAM_MS = 200;
const TIMES = 3;
/** Limits from the design. */
const GOODPUT = 0.9;
const SLOWER = 2;
const SHED_MS = 5;
const RECOVERY_MS = 2_000;
const APART = 1.2;
const HEALTH_EVERY_MS = 20;

/** Delay that this machine adds to any response of the gateway: median and 99th percentile. */
interface Noise {
  readonly usual: number;
  readonly worst: number;
}

export interface OverloadOptions {
  seconds: number;
  /** Concurrent calls that gateway.yaml allows. */
  concurrent: number;
  seed: number;
  /** The gateway gets a CPU of its own, for an idle machine. */
  pin?: boolean;
  /**
   * Milliseconds that a planted middleware works on each request before admission. Rejections show
   * it, and nothing else is tested then.
   */
  thinks?: number;
  say?: (line: string) => void;
}

const yaml = (url: string, { concurrent, thinks }: OverloadOptions) => `
frontends: [chat-completions]
middleware: [auth, ${thinks === undefined ? "" : "./thinks.mjs, "}limits, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
overload: { max_concurrent: ${concurrent} }
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: {} } }
`;

const THINKS = (ms: number) => `
export default {
  "~tollgate": "middleware", api: 1, name: "thinks", summary: "Thinks", sends: "nowhere",
  setup: () => ({ admit: () => new Promise((resolve) => setTimeout(resolve, ${ms})) }),
};`;

export async function overload(of: OverloadOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const tell = of.say ?? (() => {});
  const wrong: string[] = [];
  const up = await startUpstream({
    "POST /*": (asked) => ({ ...say("Hello.").toResponse(asked), delayMs: UPSTREAM_MS }),
  });
  const daemon = await startDaemon({
    yaml: yaml(up.url, of),
    files: { "thinks.mjs": THINKS(of.thinks ?? 0) },
  });
  const pinned = of.pin === true && (await pin(daemon.pid));
  try {
    const words = () => Array.from({ length: 5 + chanced.below(50) }, () => "word").join(" ");
    const body = () =>
      JSON.stringify({ model: "up/model", messages: [{ role: "user", content: words() }] });
    const ask = (key = daemon.key) => askOnce(daemon.url, key, body());
    await runClosedLoop({ clients: 8, ms: 1_000, ask });
    const flood = await flooded(of, daemon.url, ask, wrong, tell);
    const calls = up.requests.filter(({ method }) => method === "POST").length;
    const rows = await rowsOf(daemon, calls);
    if (rows !== calls) wrong.push(`${rows} rows for ${calls} calls: what is refused has none`);
    const fair = of.thinks === undefined ? await apart(of, daemon, ask, wrong, tell) : {};
    const machine = { load: loadavg()[0]!.toFixed(1), pinned: pinned ? "yes" : "no" };
    return { wrong, counts: { ...flood, ...fair, rows, ...machine }, seed: of.seed };
  } finally {
    await daemon[Symbol.asyncDispose]();
    await up.close();
  }
}

/** The gateway on one CPU and its clients on another, if there are two. */
async function pin(pid: number): Promise<boolean> {
  const put = (which: number, cpu: number) =>
    new Promise<boolean>((resolve) => {
      execFile("taskset", ["-a", "-pc", String(cpu), String(which)], (error) => resolve(!error));
    });
  return (await put(pid, 0)) && (await put(process.pid, 1));
}

async function flooded(
  { seconds, concurrent }: OverloadOptions,
  url: string,
  ask: () => Promise<TimedResponse>,
  wrong: string[],
  tell: (line: string) => void,
) {
  const usual = await runOpenLoop({ perSecond: 20, ms: 3_000, ask });
  const unloaded = percentile(
    usual.map(({ ms }) => ms),
    0.99,
  );
  const best = await runClosedLoop({ clients: concurrent, ms: 3_000, ask });
  const peak = best.filter(isGood).length / 3;
  tell(`unloaded p99 ${unloaded.toFixed(0)} ms, at best ${peak.toFixed(0)} a second`);
  const [all, noise] = await beside(
    url,
    runOpenLoop({
      perSecond: ((concurrent * 1_000) / UPSTREAM_MS) * TIMES,
      ms: seconds * 1_000,
      ask,
    }),
  );
  const ended = performance.now();
  const served = all.filter(isGood);
  const shed = all.filter(({ status }) => status === 503);
  const goodput = served.length / seconds;
  const p99 = percentile(
    served.map(({ ms }) => ms),
    0.99,
  );
  const shedP99 = percentile(
    shed.map(({ ms }) => ms),
    0.99,
  );
  const shedP50 = percentile(
    shed.map(({ ms }) => ms),
    0.5,
  );
  tell(
    `${all.length} asked: ${served.length} served, p99 ${p99.toFixed(0)} ms; ${shed.length} refused, p50 ${shedP50.toFixed(1)} ms, p99 ${shedP99.toFixed(1)} ms`,
  );
  const others = all.length - served.length - shed.length;
  if (others > 0) wrong.push(`${others} were neither served nor refused`);
  if (goodput < peak * GOODPUT)
    wrong.push(`${goodput.toFixed(0)} a second served, ${peak.toFixed(0)} at best`);
  if (p99 > unloaded * SLOWER + noise.worst)
    wrong.push(`p99 of what was served: ${p99.toFixed(0)} ms, unloaded ${unloaded.toFixed(0)} ms`);
  if (shedP50 > SHED_MS + noise.usual)
    wrong.push(`half of the refusals took more than ${shedP50.toFixed(1)} ms`);
  if (shedP99 > SHED_MS + noise.worst) wrong.push(`p99 of the refusals: ${shedP99.toFixed(1)} ms`);
  const mute = shed.filter(({ retryAfter }) => !/^[1-5]$/.test(retryAfter ?? ""));
  if (mute.length > 0) wrong.push(`${mute.length} refusals did not say when to come back`);
  const recovery = await recovered(ask, ended);
  if (recovery > RECOVERY_MS) wrong.push(`it took ${recovery.toFixed(0)} ms to recover`);
  return {
    peak: Math.round(peak),
    goodput: Math.round(goodput),
    unloaded: Math.round(unloaded),
    p99: Math.round(p99),
    noise: `${noise.usual.toFixed(1)}-${noise.worst.toFixed(0)}`,
    shed: shed.length,
    shedP50: Math.round(shedP50 * 10) / 10,
    shedP99: Math.round(shedP99 * 10) / 10,
    recovery: Math.round(recovery),
  };
}

/**
 * Duration of a response that needs no work of the gateway: other programs on the machine delay it
 * too.
 */
async function beside<T>(url: string, work: Promise<T>): Promise<[T, Noise]> {
  const took: number[] = [];
  let over = false;
  const looking = (async () => {
    while (!over) {
      took.push(await askHealth(url));
      await sleep(HEALTH_EVERY_MS);
    }
  })();
  const done = await work;
  over = true;
  await looking;
  return [done, { usual: percentile(took, 0.5), worst: percentile(took, 0.99) }];
}

/** When twenty in a row are served. */
async function recovered(ask: () => Promise<TimedResponse>, from: number): Promise<number> {
  for (;;) {
    const some = await runOpenLoop({ perSecond: 40, ms: 500, ask });
    if (some.every(isGood)) return Math.max(0, Math.min(...some.map(({ at }) => at)) - from);
    if (performance.now() - from > RECOVERY_MS * 5) return Infinity;
  }
}

/** Request limit of the greedy key. */
const LIMIT = 5;

async function apart(
  of: OverloadOptions,
  daemon: Daemon,
  ask: (key?: string) => Promise<TimedResponse>,
  wrong: string[],
  tell: (line: string) => void,
) {
  const greedy = await keyOf(daemon, [`requests=${LIMIT * 60}/minute`]);
  const modest = await keyOf(daemon, []);
  const ms = Math.max(5, of.seconds / 2) * 1_000;
  const alone = await runOpenLoop({ perSecond: 5, ms, ask: () => ask(modest) });
  const began = performance.now();
  const flood = runOpenLoop({ perSecond: LIMIT * 100, ms, ask: () => ask(greedy) });
  const [both, noise] = await beside(
    daemon.url,
    runOpenLoop({ perSecond: 5, ms, ask: () => ask(modest) }),
  );
  const greed = await flood;
  // Its bucket was refilled until the last response.
  const seconds = (performance.now() - began) / 1_000;
  const failed = both.filter((each) => !isGood(each));
  if (failed.length > 0)
    wrong.push(`the modest key had ${failed.length} errors: ${failed[0]!.status}`);
  const [before, after] = [alone, both].map((all) =>
    percentile(
      all.map(({ ms }) => ms),
      0.99,
    ),
  );
  tell(`the modest key: p99 ${before!.toFixed(0)} ms alone, ${after!.toFixed(0)} ms beside`);
  if (after! > before! * APART + noise.worst)
    wrong.push(
      `the modest key: p99 ${before!.toFixed(0)} ms alone, ${after!.toFixed(0)} ms beside`,
    );
  if (greed.filter(isGood).length > LIMIT * (seconds + 60) + 1)
    wrong.push("the greedy key was served more than its limit");
  return { alone: Math.round(before!), beside: Math.round(after!) };
}

async function keyOf(daemon: Daemon, limits: string[]): Promise<string> {
  const made = (await daemon.ask("keys.create", { name: "rig", limits: limits as never })) as {
    secret: string;
  };
  return made.secret;
}

/** The number, once it is as expected or its time is over. */
async function rowsOf(daemon: Daemon, expected: number): Promise<number> {
  let rows = -1;
  for (const end = performance.now() + 10_000; rows !== expected; await sleep(50)) {
    const said = (await daemon.ask("ledger.totals", {})) as unknown as { total: { calls: number } };
    rows = said.total.calls;
    if (performance.now() > end) break;
  }
  return rows;
}

export const rig: Rig = {
  options: { seconds: 60, concurrent: 64, seed: Date.now() % 1e6, pin: false },
  run: ({ seconds, concurrent, seed, pin }, tell) =>
    overload({
      pin: pin === "true",
      seconds: Number(seconds),
      concurrent: Number(concurrent),
      seed: Number(seed),
      say: tell,
    }),
};
