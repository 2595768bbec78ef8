// Broken plugins of every known type under load: no other client sees a failure, each broken plugin
// is named, and those that keep failing are quarantined. First those that the process contains,
// then those that end it: in one of two workers, and alone.
import { rm } from "node:fs/promises";
import type { Daemon } from "../../kit/process/daemon.ts";
import { startBillingUpstream, type BillingUpstream } from "../money/billing-upstream.ts";
import { alone, ofTwo } from "./process-killers.ts";
import { held } from "./contained.ts";
import { Others } from "./other-clients.ts";
import { OUTSIDE_WAYS, played, withGuard, type OutsideWay } from "./out-of-process.ts";
import { broken, ledgerOf, type Plant } from "./stage.ts";
import { DEADLY, HELD, HOOKS, type Deadly } from "./failure-modes.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

/** Time until a blocked process is ended, on a busy machine. */
const PATIENCE_MS = 90_000;

export interface PluginsOptions {
  readonly seed: number;
  /** Number of requests to each contained one. 0: they are skipped. */
  readonly rounds: number;
  readonly clients: number;
  /** Plugins that end one of two workers. */
  readonly deadly: readonly Deadly[];
  /** Plugins that end a single process. */
  readonly alone: readonly Deadly[];
  /** Maximum wait for an exit. */
  readonly patienceMs?: number;
  /**
   * Planted defect of the gateway, which must be found: blocked processes are not ended, or some
   * rows are written twice.
   */
  readonly mutant?: "unwatched" | "twice" | "within";
  /** Those of an isolated plugin. */
  readonly outside?: readonly OutsideWay[];
}

interface Play {
  readonly of: PluginsOptions;
  readonly up: BillingUpstream;
  readonly chanced: Chance;
  readonly wrong: string[];
  readonly told: (line: string) => void;
}

export async function plugins(
  of: PluginsOptions,
  told: (line: string) => void = () => {},
): Promise<RigResult> {
  const wrong: string[] = [];
  await using up = await startBillingUpstream();
  const play: Play = { of, up, chanced: createChance(of.seed), wrong, told };
  const first = of.rounds + of.deadly.length > 0 ? await crew(play) : NONE;
  const then = of.alone.length > 0 ? await single(play) : NONE;
  const apart = of.outside && of.outside.length > 0 ? await outside(play, of.outside) : NONE;
  return {
    wrong: [...new Set(wrong)],
    counts: {
      ways: new Set([
        ...(of.rounds > 0 ? [...Object.keys(HELD), ...HOOKS.map((how) => `hook ${how}`)] : []),
        ...of.deadly,
        ...of.alone,
        ...(of.outside ?? []),
      ]).size,
      others: first.others + then.others + apart.others,
      broken: first.broken,
      quarantined: first.aside,
      ended: of.deadly.length + of.alone.length,
      again: first.again + then.again,
    },
    seed: of.seed,
  };
}

interface Counts {
  readonly others: number;
  readonly again: number;
  readonly broken: number;
  readonly aside: number;
}
const NONE: Counts = { others: 0, again: 0, broken: 0, aside: 0 };

const plantOf = ({ mutant }: PluginsOptions): { plant: Plant; node?: string } => ({
  plant: mutant === "twice" ? "twice" : "",
  // A process in a debugger may block.
  ...(mutant === "unwatched" && { node: "--inspect=127.0.0.1:0" }),
});

const shuffled = (all: readonly Deadly[], chanced: Chance): Deadly[] =>
  all
    .map((how) => ({ how, by: chanced() }))
    .toSorted((a, b) => a.by - b.by)
    .map(({ how }) => how);

/** Two workers. */
async function crew({ of, up, chanced, wrong, told }: Play): Promise<Counts> {
  await using at = await broken({ up, workers: 2, ...plantOf(of) });
  const others = (name: string, lossy: boolean) =>
    new Others({ name, at: () => at, clients: of.clients, chanced, lossy });
  let found = { broken: 0, aside: 0 };
  const calm = others("c", false);
  if (of.rounds > 0) {
    found = await held(at, of.rounds, chanced, wrong);
    told(`held: ${JSON.stringify(found)}, beside ${calm.asked} of the others`);
  }
  await calm.end();
  const rough = others("r", true);
  for (const how of shuffled(of.deadly, chanced)) {
    const began = performance.now();
    await ofTwo(at, how, of.patienceMs ?? PATIENCE_MS, wrong);
    told(`${how}, of two: ${seconds(began)} s, ${rough.asked} of the others, ${rough.again} again`);
  }
  await rough.end();
  for (const one of [...calm.failed, ...rough.failed]) wrong.push(`another client: ${one}`);
  wrong.push(...(await ledgerOf(at, up, [...calm.heard, ...rough.heard])));
  return { others: calm.asked + rough.asked, again: rough.again, ...found };
}

/** One process with a supervisor, which restarts it in the same folder. */
async function single({ of, up, chanced, wrong, told }: Play): Promise<Counts> {
  let at: Daemon = await broken({ up, workers: 1, ...plantOf(of) });
  const { dir } = at;
  const others = new Others({ name: "a", at: () => at, clients: of.clients, chanced, lossy: true });
  const before = up.bill.length;
  try {
    for (const how of shuffled(of.alone, chanced)) {
      const began = performance.now();
      const again = () => broken({ up, workers: 1, dir, ...plantOf(of) });
      at = await alone(at, how, of.patienceMs ?? PATIENCE_MS, again, wrong);
      told(
        `${how}, alone: ${seconds(began)} s, ${others.asked} of the others, ${others.again} again`,
      );
    }
    await others.end();
    for (const one of others.failed) wrong.push(`another client, alone: ${one}`);
    const own: BillingUpstream = { ...up, bill: up.bill.slice(before) };
    wrong.push(...(await ledgerOf(at, own, others.heard)));
  } finally {
    await at[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  }
  return { ...NONE, others: others.asked, again: others.again };
}

/** Two workers, and a child of each: no other client has to retry. */
async function outside(
  { of, up, chanced, wrong, told }: Play,
  ways: readonly OutsideWay[],
): Promise<Counts> {
  await using at = await withGuard(up, of.mutant === "within");
  const before = up.bill.length;
  const others = new Others({
    name: "o",
    at: () => at,
    clients: of.clients,
    chanced,
    lossy: false,
  });
  await played(at, ways, { patienceMs: of.patienceMs ?? PATIENCE_MS, wrong });
  await others.end();
  told(`outside: ${ways.length} ways, beside ${others.asked} of the others`);
  for (const one of others.failed) wrong.push(`another client, beside a child: ${one}`);
  const own: BillingUpstream = { ...up, bill: up.bill.slice(before) };
  wrong.push(...(await ledgerOf(at, own, others.heard)));
  return { ...NONE, others: others.asked };
}

const seconds = (since: number): string => ((performance.now() - since) / 1_000).toFixed(1);

const ALL = Object.keys(DEADLY) as readonly Deadly[];
/** "loops,exits". Empty: all of them. */
const named = (said: string | undefined): readonly Deadly[] =>
  said ? ALL.filter((how) => said.split(",").includes(how)) : ALL;

export const rig: Rig = {
  options: { rounds: 40, clients: 8, only: "", mutant: "", patience: 90, seed: Date.now() % 1e6 },
  run: ({ rounds, clients, only, mutant, patience, seed }, told) =>
    plugins(
      {
        seed: Number(seed),
        rounds: only ? 0 : Number(rounds),
        clients: Number(clients),
        deadly: named(only),
        alone: named(only),
        outside: only ? OUTSIDE_WAYS.filter((way) => only.split(",").includes(way)) : OUTSIDE_WAYS,
        patienceMs: Number(patience) * 1_000,
        ...(mutant && { mutant: mutant as NonNullable<PluginsOptions["mutant"]> }),
      },
      told,
    ),
};
