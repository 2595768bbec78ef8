// Three times as many requests as can be served: the gateway serves as many as ever, as fast as ever, and refuses the rest at
// once. Then one key asks a hundred times as often as it may, and another notices nothing of it.
import { setTimeout as sleep } from "node:timers/promises";
import { say, upstream } from "tollgate/testing";
import { startGateway, type Daemon } from "../kit/daemon.ts";
import type { Rig, Verdict } from "./rig.ts";
import { chance } from "./rig.ts";
import { askOnce, closedLoop, isGood, openLoop, percentile, type Answered } from "./swarm.ts";

/** How long upstream takes. */
const UPSTREAM_MS = 200;
const TIMES = 3;
/** What is allowed, as the design says it. */
const GOODPUT = 0.9;
const SLOWER = 2;
const SHED_MS = 5;
const RECOVERY_MS = 2_000;
const APART = 1.2;
/** No difference of two times is smaller: timers have whole milliseconds. */
const LEAST_NOISE_MS = 5;

/** What this machine and this process add to any answer: mostly, and at worst in a hundred. */
interface Noise {
  readonly usual: number;
  readonly worst: number;
}

export interface OverloadOptions {
  seconds: number;
  /** Calls at once that gateway.yaml allows. */
  concurrent: number;
  seed: number;
  /** Milliseconds that a planted middleware thinks about each head before the gateway sees whether there is room. */
  thinks?: number;
  say?: (line: string) => void;
}

const yaml = (url: string, { concurrent, thinks }: OverloadOptions) => `
frontends: [chat-completions]
middleware: [auth, ${thinks === undefined ? "" : "./thinks.mjs, "}limits, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
overload: { concurrent: ${concurrent} }
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: {} } }
`;

const THINKS = (ms: number) => `
export default {
  "~tollgate": "middleware", api: 1, name: "thinks", summary: "Thinks", sends: "nowhere",
  setup: () => ({ admit: () => new Promise((resolve) => setTimeout(resolve, ${ms})) }),
};`;

export async function overload(of: OverloadOptions): Promise<Verdict> {
  const chanced = chance(of.seed);
  const tell = of.say ?? (() => {});
  const wrong: string[] = [];
  const up = await upstream({
    "POST /*": (asked) => ({ ...say("Hello.").to(asked), waitMs: UPSTREAM_MS }),
  });
  const daemon = await startGateway({
    yaml: yaml(up.url, of),
    files: { "thinks.mjs": THINKS(of.thinks ?? 0) },
  });
  try {
    const words = () => Array.from({ length: 5 + chanced.below(50) }, () => "word").join(" ");
    const body = () =>
      JSON.stringify({ model: "up/model", messages: [{ role: "user", content: words() }] });
    const ask = (key = daemon.key) => askOnce(daemon.url, key, body());
    await closedLoop({ clients: 8, ms: 1_000, ask });
    const flood = await flooded(of, ask, wrong, tell);
    const calls = up.requests.filter(({ method }) => method === "POST").length;
    const rows = await rowsOf(daemon, calls);
    if (rows !== calls) wrong.push(`${rows} rows for ${calls} calls: what is refused has none`);
    const fair = await apart(of, daemon, ask, wrong, tell);
    return { wrong, counts: { ...flood, ...fair, rows }, seed: of.seed };
  } finally {
    await daemon[Symbol.asyncDispose]();
    await up.close();
  }
}

async function flooded(
  { seconds, concurrent }: OverloadOptions,
  ask: () => Promise<Answered>,
  wrong: string[],
  tell: (line: string) => void,
) {
  const usual = await openLoop({ perSecond: 20, ms: 3_000, ask });
  const unloaded = percentile(
    usual.map(({ ms }) => ms),
    0.99,
  );
  const best = await closedLoop({ clients: concurrent, ms: 3_000, ask });
  const peak = best.filter(isGood).length / 3;
  tell(`unloaded p99 ${unloaded.toFixed(0)} ms, at best ${peak.toFixed(0)} a second`);
  const [all, noise] = await beside(
    openLoop({ perSecond: ((concurrent * 1_000) / UPSTREAM_MS) * TIMES, ms: seconds * 1_000, ask }),
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
    noise: Math.round(noise.worst),
    shed: shed.length,
    shedP99: Math.round(shedP99 * 10) / 10,
    recovery: Math.round(recovery),
  };
}

/** How late a timer and a look at the sockets are here meanwhile. */
async function beside<T>(work: Promise<T>): Promise<[T, Noise]> {
  const late: number[] = [];
  let over = false;
  const looking = (async () => {
    while (!over) {
      const began = performance.now();
      await sleep(5);
      await new Promise(setImmediate);
      late.push(performance.now() - began - 5);
    }
  })();
  const done = await work;
  over = true;
  await looking;
  const noise = (share: number) => Math.max(LEAST_NOISE_MS / 2, 2 * percentile(late, share));
  return [done, { usual: noise(0.5), worst: noise(0.99) }];
}

/** When twenty in a row are served. */
async function recovered(ask: () => Promise<Answered>, from: number): Promise<number> {
  for (;;) {
    const some = await openLoop({ perSecond: 40, ms: 500, ask });
    if (some.every(isGood)) return Math.max(0, Math.min(...some.map(({ at }) => at)) - from);
    if (performance.now() - from > RECOVERY_MS * 5) return Infinity;
  }
}

/** The greedy key may ask so often. */
const LIMIT = 5;

async function apart(
  { seconds }: OverloadOptions,
  daemon: Daemon,
  ask: (key?: string) => Promise<Answered>,
  wrong: string[],
  tell: (line: string) => void,
) {
  const greedy = await keyOf(daemon, [{ unit: "requests", max: LIMIT * 60, per: "minute" }]);
  const modest = await keyOf(daemon, []);
  const ms = Math.max(5, seconds / 2) * 1_000;
  const alone = await openLoop({ perSecond: 5, ms, ask: () => ask(modest) });
  const flood = openLoop({ perSecond: LIMIT * 100, ms, ask: () => ask(greedy) });
  const [both, noise] = await beside(openLoop({ perSecond: 5, ms, ask: () => ask(modest) }));
  const greed = await flood;
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
  if (greed.filter(isGood).length > (LIMIT * ms) / 1_000 + LIMIT * 60 + 1)
    wrong.push("the greedy key was served more than its limit");
  return { alone: Math.round(before!), beside: Math.round(after!) };
}

async function keyOf(daemon: Daemon, limits: object[]): Promise<string> {
  const made = (await daemon.ask("keys.create", { name: "rig", limits: limits as never })) as {
    secret: string;
  };
  return made.secret;
}

/** How many there are when they are as many as there should be, or have been given the time for it. */
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
  options: { seconds: 60, concurrent: 64, seed: Date.now() % 1e6 },
  run: ({ seconds, concurrent, seed }, tell) =>
    overload({
      seconds: Number(seconds),
      concurrent: Number(concurrent),
      seed: Number(seed),
      say: tell,
    }),
};
