// The wall clock of a gateway jumps by seconds, hours, and days in both directions while it serves.
// Waits use the monotonic clock and keep their duration, limits admit what they state, the ledger
// stays valid, and wall-clock times, such as a key's expiry, follow the wall clock.
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "tollgate/plugin";
import { say, startUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const FIRST_BYTE_MS = 2_000;
const IDLE_MS = 1_500;
/**
 * A silent upstream responds long after the gateway's timeout, so a missing timeout is detected.
 */
const SILENT_MS = 10_000;
/** A delay of the machine is no silence. */
const GAP_MS = 100;
const WORDS = 30;
/** For a watchdog that checks four times per second, on a busy machine. */
const SLACK_MS = 5_000;
const DAY_MS = 86_400_000;
const JUMPS = [1_000, 60_000, 3_600_000, DAY_MS, 40 * DAY_MS];
/** A rate limit: a burst size, and an interval per further request. */
const RATE = { max: 60, everyMs: 1_000 };
const STARVES_MS = 10_000;

const yaml = (url: string) => `
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
timeouts: { first_byte: ${FIRST_BYTE_MS}ms, idle: ${IDLE_MS}ms, total: 20s, classes: {} }
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { quick: {}, slow: {} } }
`;

export async function clock(of: {
  jumps: number;
  seed: number;
  plant?: string;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  const dir = await mkdtemp(join(tmpdir(), "tollgate-clock-"));
  const file = join(dir, "clock");
  const up = await startUpstream({
    "POST /*": (asked) => {
      const { model } = asked.json() as { model: string };
      const words = Array.from({ length: WORDS }, (_, i) => `word${i}`).join(" ");
      if (model.startsWith("silent"))
        return { ...say(words).toResponse(asked), delayMs: SILENT_MS };
      return { ...say(words).toResponse(asked), ...(model === "slow" && { chunkDelayMs: GAP_MS }) };
    },
  });
  const hook = join(import.meta.dirname, "../mutants/jumping-clock.mjs");
  const env = {
    NODE_OPTIONS: `--import=${hook}`,
    CLOCK_FILE: file,
    CLOCK_PLANT: of.plant ?? "",
  };
  const home = join(dir, "gateway");
  await mkdir(home);
  const daemon = await startDaemon({ yaml: yaml(up.url), env, dir: home });
  try {
    await jumping({ ...of, file, chanced }, [
      () => silent(daemon, wrong),
      () => slow(daemon, wrong),
      rating(daemon, of.jumps, wrong),
    ]);
    await ends(daemon, file, wrong);
    const { problems } = (await daemon.ask("ledger.verify", {})) as { problems: unknown[] };
    for (const problem of problems) wrong.push(`the ledger: ${JSON.stringify(problem)}`);
    return { wrong, counts: { jumps: of.jumps, calls: up.requests.length }, seed: of.seed };
  } finally {
    await daemon[Symbol.asyncDispose]();
    await up.close();
    await rm(dir, { recursive: true, force: true });
  }
}

/** The clock jumps while each task is repeated. */
async function jumping(
  { jumps, file, chanced }: { jumps: number; file: string; chanced: Chance },
  works: readonly (() => Promise<void>)[],
): Promise<void> {
  let over = false;
  const all = works.map(async (work) => {
    while (!over) await work();
  });
  for (let n = 0; n < jumps; n++) {
    await jump(file, chanced.one(JUMPS) * (chanced.often(0.5) ? 1 : -1));
    await sleep(200 + chanced.below(800));
  }
  over = true;
  await Promise.all(all);
}

/** Sets the offset. The file is replaced atomically. */
async function jump(file: string, off: number): Promise<void> {
  await writeFile(`${file}.new`, String(off));
  await rename(`${file}.new`, file);
}

/** A different model for each, because a failing one is no longer called. */
let asked = 0;

/** A response that never starts is canceled at its timeout, neither earlier nor later. */
async function silent(daemon: Daemon, wrong: string[]): Promise<void> {
  const began = performance.now();
  const { status } = await ask(daemon, `silent${++asked}`);
  const ms = performance.now() - began;
  if (status !== 504 || ms < FIRST_BYTE_MS - 50 || ms > FIRST_BYTE_MS + SLACK_MS)
    wrong.push(`a silent provider: ${status} after ${Math.round(ms)} ms`);
}

/** A steady response is not truncated. */
async function slow(daemon: Daemon, wrong: string[]): Promise<void> {
  const { status, text } = await ask(daemon, "slow");
  if (status !== 200 || !text.includes("[DONE]"))
    wrong.push(`a slow stream: ${status} ${text.slice(-200)}`);
}

/**
 * A rate limit admits what it states. A jump forward counts as elapsed time and may fill the bucket
 * once.
 */
function rating(daemon: Daemon, jumps: number, wrong: string[]): () => Promise<void> {
  const began = performance.now();
  let served = 0;
  let last = began;
  let key: string | undefined;
  return async () => {
    key ??= await keyOf(daemon, { limits: [`requests=${RATE.max}/minute`] });
    const { status } = await ask(daemon, "quick", key);
    const now = performance.now();
    if (status === 200) [served, last] = [served + 1, now];
    else if (status !== 429) wrong.push(`a key with a rate: ${status}`);
    if (served > RATE.max * (1 + jumps) + (now - began) / RATE.everyMs + 1)
      wrong.push(`a rate let in ${served} in ${Math.round(now - began)} ms`);
    if (now - last > STARVES_MS)
      wrong.push(`a rate let in nothing for ${Math.round(now - last)} ms`);
    await sleep(20);
  };
}

/** A key's expiry is a wall-clock time. */
async function ends(daemon: Daemon, file: string, wrong: string[]): Promise<void> {
  await jump(file, 0);
  await sleep(200);
  const key = await keyOf(daemon, { expires: Date.now() + DAY_MS / 2 });
  for (const [off, expected] of [
    [0, 200],
    [DAY_MS, 401],
    [0, 200],
  ] as const) {
    await jump(file, off);
    await sleep(200);
    const { status } = await ask(daemon, "quick", key);
    if (status !== expected)
      wrong.push(`a key that ends in half a day, a clock off by ${off}: ${status}`);
  }
}

async function keyOf(daemon: Daemon, of: JsonObject): Promise<string> {
  const made = (await daemon.ask("keys.create", { name: "rig", ...of })) as { secret: string };
  return made.secret;
}

async function ask(
  { url, key: first }: Daemon,
  model: string,
  key = first,
): Promise<{ status: number; text: string }> {
  const answer = fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: `up/${model}`,
      stream: model !== "quick",
      messages: [{ role: "user", content: "Hello." }],
    }),
  });
  try {
    const res = await answer;
    return { status: res.status, text: await res.text() };
  } catch (error) {
    return { status: 0, text: String(error) };
  }
}

export const rig: Rig = {
  options: { jumps: 60, seed: Date.now() % 1e6 },
  run: ({ jumps, seed }) => clock({ jumps: Number(jumps), seed: Number(seed) }),
};
