// Half of a ledger is pruned while calls are served, and the process is killed during it,
// repeatedly. The sums and budgets stay the same, the chain is valid, and every acknowledged call
// exists.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Store, StoreCommand } from "tollgate/plugin";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { onFile } from "../../plugins/stores/stores-under-test.ts";
import { type ChangedSource, mutantOf, preloaded } from "../mutants/changed-source.ts";
import { type Chance, createChance, type Rig, type RigResult, waitsMore } from "../rig.ts";

const CHILD = new URL("./prune-child.ts", import.meta.url).pathname;
const DAY = 86_400_000;
/** The old half covers these days, and the new one the last of them. */
const DAYS = 40;
const KEYS = 40;
const MODELS = 8;
/** Number of calls in a commit. */
const CALLS = 250;
/**
 * Maximum time that one step may delay the writer, in milliseconds. The machine has a margin of
 * factor ten.
 */
const STEP_MS = 50;
const STEP_MARGIN = 10;
/** A kill happens within this part of a prune's duration, once one has finished. */
const WITHIN = 0.7;

/** Planted defect of the store, which must be found. */
const MUTANTS = {
  // A row's cost is in no sum.
  costless: {
    in: "plugins/stores/sqlite/retention/compaction.ts",
    line: "sums.add(row);",
    instead: "sums.add({ ...row, costNano: 0n });",
  },
  // Budgets lose their usage.
  forgiving: {
    in: "plugins/stores/sqlite/retention/compaction.ts",
    line: "map(([id, level]) => [id, String(level)])",
    instead: 'map(([id]) => [id, "0"])',
  },
  // The chain does not record its new start.
  unanchored: {
    in: "plugins/stores/sqlite/retention/compaction-steps.ts",
    line: "journal.appendNote(at, { compacted:",
    instead: "void (at, { compacted:",
  },
  // Rows are deleted without a replacement.
  hasty: {
    in: "plugins/stores/sqlite/retention/compaction-steps.ts",
    line: "for (const row of sums) lay.run(...row);",
    instead: "for (const row of sums.slice(1)) lay.run(...row);",
  },
  // The writer is delayed.
  holding: {
    in: "plugins/stores/sqlite/retention/compaction-steps.ts",
    line: "let rows = 0;",
    instead: "let rows = 0; for (const from = Date.now(); Date.now() - from < 2_000;);",
  },
} as const satisfies Record<string, ChangedSource>;

interface Of {
  readonly rows: number;
  readonly kills: number;
  readonly seed: number;
  readonly rate: number;
  /**
   * Seconds of calls before the last run prunes. The waits of reserves in this time are the
   * baseline.
   */
  readonly alone: number;
  readonly patience: number;
  readonly mutant?: keyof typeof MUTANTS | undefined;
}
type Say = (line: string) => void;

const budget = (key: string) =>
  ({ scope: `key:${key}`, unit: "nano_usd", max: 10n ** 15n, per: "total" }) as const;

/** A commit of concurrent calls. Some end or are corrected in the next commit. */
function commitOf(at: number, n: number, chanced: Chance, over: StoreCommand[]): StoreCommand[] {
  const batch = over.splice(0);
  for (let i = 0; i < CALLS; i++) {
    const attempt = `f${String(n * CALLS + i).padStart(10, "0")}`;
    const key = `key${chanced.below(KEYS)}`;
    const target = {
      provider: "openai",
      model: `m${chanced.below(MODELS)}`,
      protocol: null,
      credential: "c",
    };
    const labels = { team: `t${chanced.below(4)}` };
    const claims = [{ ...budget(key), take: 2_000n }];
    batch.push(reserveCommand(attempt, { at, key, target, labels, claims }));
    const end = settleCommand(attempt, { at: at + 1_000, costNano: BigInt(chanced.below(1_000)) });
    if (chanced.often(0.98)) batch.push(end);
    else over.push(end);
    if (chanced.often(0.002))
      over.push({ do: "adjust", at: at + 2_000, attempt, costNano: -1n, reason: "r", actor: "x" });
  }
  return batch;
}

async function filled(store: Store, of: Of, now: number, say: Say): Promise<void> {
  const chanced = createChance(of.seed);
  const commits = Math.max(4, Math.ceil(of.rows / 2 / CALLS));
  const over: StoreCommand[] = [];
  for (let n = 0; n < commits; n++) {
    const part = n / commits;
    const at =
      part < 0.5 ? now - DAYS * DAY + part * 2 * (DAYS - 10) * DAY : now - DAY * (2 - part);
    await store.apply(commitOf(Math.floor(at), n, chanced, over));
    if (n % 4_000 === 3_999) say(`${(n + 1) * CALLS * 2} rows`);
  }
  await store.apply(over);
}

/** Invariants: sums by every field of rows, and the rest of budgets. */
async function told(store: Store): Promise<string> {
  const sums = await store.sumEntries({ by: ["day", "key", "model", "state"] });
  const probes = Array.from({ length: KEYS }, (_, i) => ({
    attempt: `probe-${process.hrtime.bigint()}-${i}`,
    claims: [{ ...budget(`key${i}`), take: 0n }],
  }));
  const verdicts = await store.apply(
    probes.map(({ attempt, claims }) =>
      reserveCommand(attempt, { at: Date.now(), key: "live", claims }),
    ),
  );
  await store.apply(
    probes.map(({ attempt }) =>
      settleCommand(attempt, { at: Date.now(), state: "void", costNano: 0n, usage: {} }),
    ),
  );
  const left = verdicts.map((verdict) => String(verdict.ok && verdict.limits?.[0]?.remaining));
  const rows = sums.filter(({ by }) => by["key"] !== "live");
  return JSON.stringify([rows, left], (_, value: unknown) =>
    typeof value === "bigint" ? `${value}` : value,
  );
}

interface Life {
  readonly settled: Set<string>;
  killed: number;
  finished: number;
  longestMs: number;
  /** The shortest duration of a whole prune. */
  shortestMs: number;
  /** Reserves of the last run, before and during its prune. */
  aloneP99Ms: number;
  p99Ms: number;
}

/** One process, until it is killed, or until it has pruned if `killAfter` is undefined. */
async function life(
  file: string,
  run: string,
  before: number,
  of: Of & { killAfter: number | undefined; life: Life },
): Promise<void> {
  const alone = of.killAfter === undefined ? of.alone * 1_000 : 0;
  const args = [CHILD, file, run, `${before}`, `${of.rate}`, `${alone}`];
  const child = spawn(process.execPath, ["--conditions=tollgate-source", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...(of.mutant && preloaded(MUTANTS[of.mutant])) },
  });
  let timer: NodeJS.Timeout | undefined;
  let began = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, one, longest, aloneP99, p99] = line.split(" ");
    if (what === "begins") {
      began = performance.now();
      if (of.killAfter !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), of.killAfter);
    }
    if (what === "settled") of.life.settled.add(one!);
    if (what !== "pruned") continue;
    of.life.finished++;
    of.life.shortestMs = Math.min(of.life.shortestMs, performance.now() - began);
    of.life.longestMs = Math.max(of.life.longestMs, Number(longest));
    if (alone > 0) [of.life.aloneP99Ms, of.life.p99Ms] = [Number(aloneP99), Number(p99)];
    child.kill("SIGKILL");
  }
  clearTimeout(timer);
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  if (child.signalCode !== "SIGKILL") throw new Error(`Run ${run} ended by itself.`);
  of.life.killed++;
}

export async function prune(of: Of, say: Say): Promise<RigResult> {
  const wrong: string[] = [];
  const dir = await mkdtemp(join(tmpdir(), "tollgate-prune-"));
  const file = join(dir, "ledger.db");
  const now = Date.now();
  const chanced = createChance(of.seed + 1);
  const lives: Life = {
    settled: new Set(),
    killed: 0,
    finished: 0,
    longestMs: 0,
    shortestMs: Infinity,
    aloneP99Ms: 0,
    p99Ms: 0,
  };
  try {
    const filler = await onFile(file, { durability: "process" });
    await filler.store.open({ instance: "filler" });
    await filled(filler.store, of, now, say);
    const before = await told(filler.store);
    await filler.dispose();
    const bytes = (await stat(file)).size;
    say(`filled, ${Math.round(bytes / 1e6)} MB`);
    // Each run has a part of the old half before it, on top of the rest of the previous one.
    const most = 300 + of.rows / 50 / Math.max(1, of.kills);
    for (let k = 0; k < of.kills; k++) {
      const upTo = now - DAYS * DAY + ((k + 1) / of.kills) * (DAYS - 10) * DAY;
      const killAfter = chanced() * Math.min(most, WITHIN * lives.shortestMs);
      await life(file, `r${k}`, upTo, { ...of, killAfter, life: lives });
    }
    const inTheMiddle = of.kills - lives.finished;
    if (inTheMiddle * 2 < of.kills)
      wrong.push(`only ${inTheMiddle} of ${of.kills} kills fell into the middle`);
    await life(file, "last", now - 5 * DAY, { ...of, killAfter: undefined, life: lives });
    const end = await onFile(file);
    await end.store.open({ instance: "judge" });
    for (const { path, message } of await end.store.verify!()) wrong.push(`${path} ${message}`);
    if ((await told(end.store)) !== before) wrong.push("sums or budgets are not what they were");
    const { prunedRows = 0 } = (await end.store.maintenance!.readState!()) ?? {};
    if (prunedRows < of.rows * 0.45) wrong.push(`only ${prunedRows} rows are gone`);
    wrong.push(...(await lost(end.store, lives.settled)));
    if (waitsMore(lives.aloneP99Ms, lives.p99Ms, of.patience))
      wrong.push(
        `reserves waited ${Math.round(lives.aloneP99Ms)} ms at p99, and ${Math.round(lives.p99Ms)} ms beside a prune`,
      );
    const longest = `the longest step took ${Math.round(lives.longestMs)} ms`;
    if (lives.longestMs > STEP_MS * STEP_MARGIN * of.patience) wrong.push(longest);
    else if (lives.longestMs > STEP_MS) say(longest);
    await end.dispose();
    return {
      wrong,
      counts: {
        rows: of.rows,
        pruned: prunedRows,
        kills: lives.killed - 1,
        inTheMiddle,
        served: lives.settled.size,
        longestMs: Math.round(lives.longestMs),
        aloneP99Ms: Math.round(lives.aloneP99Ms),
        reserveP99Ms: Math.round(lives.p99Ms),
        mb: `${Math.round(bytes / 1e6)}>${Math.round((await stat(file)).size / 1e6)}`,
        seconds: Math.round((Date.now() - now) / 1_000),
      },
      seed: of.seed,
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Acknowledged calls that are not in the ledger. */
async function lost(store: Store, settled: ReadonlySet<string>): Promise<string[]> {
  const there = new Set<string>();
  let after: string | undefined;
  do {
    const page = await store.listEntries({ key: "live" }, { after, limit: 1_000 });
    for (const { kind, attempt, outcome } of page.items)
      if (kind === "settle" && outcome === "ok") there.add(attempt);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return [...settled].filter((attempt) => !there.has(attempt)).map((name) => `${name} is lost`);
}

export const rig: Rig = {
  options: {
    rows: 200_000,
    kills: 20,
    seed: Date.now() % 1e6,
    rate: 200,
    alone: 5,
    patience: 1,
    mutant: "",
  },
  run: ({ rows, kills, seed, rate, alone, patience, mutant }, say) =>
    prune(
      {
        rows: Number(rows),
        kills: Number(kills),
        seed: Number(seed),
        rate: Number(rate),
        alone: Number(alone),
        patience: Number(patience),
        mutant: mutantOf(MUTANTS, mutant),
      },
      say,
    ),
};
