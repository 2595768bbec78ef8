// Kills the real gateway under load, repeatedly, and compares its ledger with the upstream's bill.
//
// Groups of some kills have their own ledger and upstream: a ledger is verified after every
// recovery, which is cheap while it is small. Two groups run in parallel, so that one starts while
// the other works.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry, Store } from "tollgate/plugin";
import sqlite from "../../../plugins/stores/sqlite.ts";
import { createTestContext } from "../../../src/testing/context.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { startBillingUpstream, billing, FRONTENDS } from "../money/billing-upstream.ts";
import { judged } from "./crash-checks.ts";
import naive from "../mutants/naive-store.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { ask, nextRequest, TARGETS, type ClientResult } from "../load/traffic.ts";

const CLIENTS = 6;
const KILLS_A_WORLD = 25;
const SIDE_BY_SIDE = 2;
/** A request without a response within this time is killed as it is. */
const LAZY_MS = 5_000;

/**
 * Store of the gateway: the built-in one, a simple one without a defect, or one with a planted
 * defect.
 */
const storeOf = (plant: string): string =>
  plant === ""
    ? "{ use: sqlite, with: { durability: process, ballast_mb: 0 } }"
    : `{ use: "${join(import.meta.dirname, "../mutants/naive-store.ts")}", with: { bug: ${plant} } }`;

const yaml = (url: string, plant: string) => `
frontends: ${FRONTENDS}
retries: { per_target: 1 }
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: ${storeOf(plant)}
providers:${billing(url)}
models:
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
`;

type Counts = { [what: string]: number };

export async function crash(of: {
  kills: number;
  seed: number;
  plant: string;
  /** The gateway from `npm run build`: it starts sooner, and starting takes most of the time. */
  built?: boolean;
  say: (line: string) => void;
  /** Timeout. */
  withinMs?: number;
}): Promise<RigResult> {
  const wrong: string[] = [];
  const counts: Counts = { kills: 0 };
  const began = performance.now();
  const until = began + (of.withinMs ?? Infinity);
  const seeds = createChance(of.seed);
  const worlds = Array.from({ length: Math.ceil(of.kills / KILLS_A_WORLD) }, (_, n) => ({
    n,
    kills: Math.min(KILLS_A_WORLD, of.kills - n * KILLS_A_WORLD),
    chanced: createChance(seeds.below(2 ** 31)),
  }));
  const killed = () => {
    counts["kills"]!++;
    const seconds = Math.round((performance.now() - began) / 1_000);
    if (counts["kills"]! % 20 === 0) of.say(`${counts["kills"]} kills in ${seconds} s`);
  };
  const side = async () => {
    for (let next = worlds.shift(); next && performance.now() < until; next = worlds.shift()) {
      const { n } = next;
      const found = await world({
        ...next,
        plant: of.plant,
        built: of.built ?? false,
        until,
        killed,
      });
      for (const problem of found.wrong) wrong.push(`world ${n}: ${problem}`);
      for (const problem of found.wrong) of.say(`  wrong: world ${n}: ${problem}`);
      for (const [what, count] of Object.entries(found.counts))
        counts[what] = (counts[what] ?? 0) + count;
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, side));
  const seconds = Math.round((performance.now() - began) / 1_000);
  return { wrong, counts: { ...counts, seconds }, seed: of.seed };
}

/** One ledger, one upstream, and some kills. */
async function world(of: {
  kills: number;
  chanced: Chance;
  plant: string;
  built: boolean;
  until: number;
  killed: () => void;
}): Promise<{ wrong: string[]; counts: Counts }> {
  const wrong: string[] = [];
  await using upstream = await startBillingUpstream();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-crash-"));
  const heard: ClientResult[] = [];
  let key = "";
  let verified = 0;
  let daemon: Daemon | undefined;
  const start = async () => {
    daemon = await startDaemon({ yaml: yaml(upstream.up.url, of.plant), dir, built: of.built });
    key ||= daemon.key;
    const { problems } = (await daemon.ask("ledger.verify")) as { problems: { message: string }[] };
    for (const { message } of problems) wrong.push(`after start ${verified}: ${message}`);
    verified++;
    return daemon;
  };
  try {
    for (let n = 0; n < of.kills && performance.now() < of.until; n++) {
      await life(await start(), key, n, of.chanced, heard);
      of.killed();
    }
    // The next gateway finds the open calls.
    await (await start()).stop();
    const { entries, problems } = await read(join(dir, ".tollgate"), of.plant);
    const settles = entries.filter((e) => e.kind === "settle");
    return {
      wrong: [...wrong, ...problems, ...judged(entries, upstream.bill, heard)],
      counts: {
        requests: heard.length,
        delivered: heard.filter((h) => h.delivered).length,
        billed: upstream.bill.length,
        exact: settles.filter((e) => e.state === "exact").length,
        estimated: settles.filter((e) => e.state === "estimated" && e.outcome !== "recovered")
          .length,
        recovered: settles.filter((e) => e.outcome === "recovered").length,
        verified,
      },
    };
  } finally {
    daemon?.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
  }
}

/** Some traffic, and a kill at a random moment. */
async function life(
  daemon: Daemon,
  key: string,
  n: number,
  chanced: Chance,
  heard: ClientResult[],
) {
  let dead = false;
  let count = 0;
  const before = heard.length;
  const client = async () => {
    while (!dead) {
      const request = nextRequest(chanced, `${n}.${count++}`);
      heard.push(await ask(daemon.url, key, request));
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  // Mostly under full load, however fast the machine is. Sometimes before any response, or after
  // streams have reported progress.
  const answers = chanced.often(0.1) ? 0 : 4 + chanced.below(40);
  for (const end = performance.now() + LAZY_MS; heard.length - before < answers; await sleep(5))
    if (performance.now() > end) break;
  await sleep(chanced.often(0.1) ? 1_200 + chanced.below(800) : chanced.below(100));
  daemon.kill("SIGKILL");
  dead = true;
  await Promise.all([...clients, daemon.exit]);
}

async function read(stateDir: string, plant: string) {
  const lent = createTestContext({ id: "store" });
  const store = (
    plant === ""
      ? await sqlite.setup(
          { file: join(stateDir, "store", "ledger.db"), durability: "process", ballast_mb: 0 },
          lent.ctx,
        )
      : await naive.setup(
          { bug: plant as "none", file: join(stateDir, "store", "ledger.jsonl") },
          lent.ctx,
        )
  ) as Store;
  await store.open({ instance: "reader" });
  const entries: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = await store.listEntries({}, { after, limit: 1_000 });
    entries.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  const problems = ((await store.verify?.()) ?? []).map((p) => `verify: ${p.path} ${p.message}`);
  await lent.end();
  return { entries, problems };
}

export const rig: Rig = {
  options: { kills: 50, seed: Date.now() % 1e6, plant: "", built: "no", minutes: 60 },
  run: ({ kills, seed, plant = "", built, minutes }, say) =>
    crash({
      kills: Number(kills),
      seed: Number(seed),
      plant,
      built: built === "yes",
      say,
      withinMs: Number(minutes) * 60_000,
    }),
};
