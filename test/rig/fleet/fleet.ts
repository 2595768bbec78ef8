// Several real gateways on one real PostgreSQL under all faults, with their common ledger compared
// with the upstream's bill: no call is lost, doubled, or mispriced, and no budget exceeded,
// whichever gateway, database, or network link fails.
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "tollgate/plugin";
import { startFleet, type Fleet } from "../../kit/database/fleet.ts";
import { startPostgres } from "../../kit/database/postgres.ts";
import { startBillingUpstream, billing, FRONTENDS } from "../money/billing-upstream.ts";
import { FAULTS, LEASE_MS, type World } from "./fleet-faults.ts";
import { gateAsked } from "./fleet-apply-batch.ts";
import { judgedFleet } from "./fleet-checks.ts";
import { deadlocksIn, planted } from "./fleet-sql-mutants.ts";
import { LOGGED, Refusals } from "./fleet-aborted-transactions.ts";
import { miscounted, readCounted } from "./fleet-consistency.ts";
import { Traffic } from "./fleet-traffic.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { TARGETS } from "../load/traffic.ts";

/** Every protocol, each provider with a price. `shutdown`: how it ends. */
export const fleetYaml = (url: string, shutdown = "announce: 0s, timeout: 5s"): string => `
frontends: ${FRONTENDS}
retries: { per_target: 1 }
middleware: [auth, { use: limits, with: { hold: hard } }, { use: usage, with: { label_headers: [x-rig] } }]
shutdown: { ${shutdown} }
providers:${billing(url)}
models:
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
`;

export async function fleetRig(of: {
  seconds: number;
  nodes: number;
  clients: number;
  /** Calls per second, as far as clients and machine can. */
  rate: number;
  /**
   * Approximate time between the starts of two faults. A fault that lasts longer delays the next
   * one.
   */
  everyMs: number;
  seed: number;
  /** A defect planted in the database's part of the store. */
  plant?: string;
  faults?: readonly string[];
  built?: boolean;
  say?: (line: string) => void;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using upstream = await startBillingUpstream();
  const refusals = new Refusals();
  const postgres = await startPostgres({
    settings: ["deadlock_timeout=50ms", ...LOGGED],
    says: refusals.says,
  });
  const url = await postgres.database();
  await using fleet = await startFleet({
    url,
    nodes: of.nodes,
    yaml: fleetYaml(upstream.up.url),
    with: { lease_ms: `${LEASE_MS}` },
    built: of.built ?? false,
  });
  const world: World = { fleet, postgres, chanced, wrong, bill: upstream.bill, lapses: [] };
  await using _ = { [Symbol.asyncDispose]: () => world.postgres[Symbol.asyncDispose]() };
  await planted(of.plant ?? "", (text) => postgres.sql(url, text));
  const traffic = new Traffic(fleet, chanced, of.rate);
  const clients = Array.from({ length: of.clients }, (_, i) => traffic.client(i));
  const counts = await broken(world, of);
  traffic.over = true;
  await Promise.all(clients);
  await quietened(fleet, wrong);
  const entries = await readEntries(fleet);
  wrong.push(...(await deadlocksIn((text) => postgres.sql(world.postgres.at(url), text))));
  wrong.push(...refusals.wrong);
  const { problems } = (await fleet.any().ask("ledger.verify")) as {
    problems: { message: string }[];
  };
  for (const { message } of problems) wrong.push(`verify: ${message}`);
  const { heard, tight } = traffic;
  wrong.push(...judgedFleet(entries, upstream.bill, heard, tight, world.lapses));
  wrong.push(
    ...miscounted(
      entries,
      await readCounted(fleet, (text) => postgres.sql(world.postgres.at(url), text)),
    ),
  );
  wrong.push(...(await gateAsked(world.postgres.at(url))));
  const ofKind = (is: (entry: LedgerEntry) => boolean) => entries.filter(is).length;
  const faults = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const calls = ofKind(({ kind }) => kind === "reserve");
  wrong.push(...fellShort({ seconds: of.seconds, faults, calls }));
  return {
    wrong,
    counts: {
      faults,
      requests: heard.length,
      delivered: heard.filter(({ delivered }) => delivered).length,
      refused: heard.filter(({ status }) => status === 503).length,
      calls,
      billed: upstream.bill.length,
      recovered: ofKind(({ outcome }) => outcome === "recovered"),
      corrected: ofKind(({ kind }) => kind === "adjust"),
      budgets: tight.length,
      "40P01": refusals.of("40P01"),
      "40001": refusals.of("40001"),
      ...counts,
    },
    seed: of.seed,
  };
}

/** Minimum faults of half an hour. A shorter run has as many as possible. */
const WHOLE = { seconds: 1_800, faults: 200, calls: 100_000 };

export const fellShort = (of: { seconds: number; faults: number; calls: number }): string[] =>
  of.seconds < WHOLE.seconds
    ? []
    : (["faults", "calls"] as const)
        .filter((what) => of[what] < WHOLE[what])
        .map((what) => `${of[what]} ${what} in ${of.seconds} s, and not ${WHOLE[what]}`);

/** One fault after another. Prints how often each occurred. */
async function broken(
  world: World,
  of: Pick<Parameters<typeof fleetRig>[0], "seconds" | "everyMs" | "faults" | "say">,
): Promise<Record<string, number>> {
  const { say = () => {}, faults = Object.keys(FAULTS) } = of;
  const { chanced } = world;
  const counts: Record<string, number> = {};
  const began = performance.now();
  const left = () => of.seconds * 1_000 - (performance.now() - began);
  // A shuffled deck: in a long run, each occurs equally often.
  let deck: string[] = [];
  for (let lastedMs = 0; left() > 0;) {
    await sleep(200 + Math.max(0, of.everyMs * (0.5 + chanced()) - lastedMs));
    if (deck.length === 0) deck = [...faults];
    const [fault] = deck.splice(chanced.below(deck.length), 1) as [string];
    counts[fault] = (counts[fault] ?? 0) + 1;
    say(`${Math.round(left() / 1_000)} s left, ${world.bill.length} billed: ${fault}`);
    const at = performance.now();
    await FAULTS[fault]!(world);
    lastedMs = performance.now() - at;
  }
  return counts;
}

const SETTLED_MS = 60_000;

/** All gateways run, and calls of dead ones are settled. */
async function quietened(fleet: Fleet, wrong: string[]): Promise<void> {
  const end = performance.now() + SETTLED_MS;
  for (const node of fleet.nodes) if (!node.daemon) await node.start();
  for (;;) {
    const open = await fleet
      .any()
      .ask("ledger.entries", { state: "open", limit: 10 })
      .then((page) => (page as { items: unknown[] }).items.length)
      .catch(() => -1);
    // New rows are listed with a short delay.
    if (open === 0) return void (await sleep(1_000));
    if (performance.now() > end)
      return void wrong.push(`${open} calls are open a minute after everything is whole`);
    await sleep(200);
  }
}

/** Amounts are text. */
export async function readEntries(fleet: Pick<Fleet, "any">): Promise<LedgerEntry[]> {
  const found: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = (await fleet.any().ask("ledger.entries", {
      limit: 1_000,
      ...(after !== undefined && { after }),
    })) as unknown as {
      items: (LedgerEntry & { costNano: string | null })[];
      next?: string;
    };
    for (const entry of page.items)
      found.push({ ...entry, costNano: entry.costNano === null ? null : BigInt(entry.costNano) });
    after = page.next;
  } while (after !== undefined);
  return found;
}

export const rig: Rig = {
  options: {
    minutes: 2,
    nodes: 3,
    clients: 96,
    rate: 66,
    every: 7_000,
    plant: "",
    faults: "",
    built: "no",
    seed: Date.now() % 1e6,
  },
  run: ({ minutes, nodes, clients, rate, every, plant = "", faults = "", built, seed }, say) =>
    fleetRig({
      seconds: Number(minutes) * 60,
      nodes: Number(nodes),
      clients: Number(clients),
      rate: Number(rate),
      everyMs: Number(every),
      plant,
      ...(faults !== "" && { faults: faults.split(",") }),
      built: built === "yes",
      seed: Number(seed),
      say,
    }),
};
