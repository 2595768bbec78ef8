// The fleet's simulator: small simulations of gateways, one after another, on virtual time.
// `--seed N` repeats one and prints its steps. `--plant all` runs each planted defect until it is
// found.
import { PLANTS } from "../fleet-sql-mutants.ts";
import type { Rig, RigResult } from "../../rig.ts";
import { SimulatedDatabase } from "./database.ts";
import { STEPS, world, type Seen } from "./world.ts";

export interface Found {
  readonly worlds: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Processor time. */
  readonly seconds: number;
  /** The first simulation with a violation. */
  readonly failed?: { readonly seed: number; readonly seen: Seen };
}

/** Runs simulations until one has a violation. */
export async function simulated(
  database: SimulatedDatabase,
  of: { readonly from: number; readonly worlds: number; say?(line: string): void },
): Promise<Found> {
  const counts: Record<string, number> = {};
  const began = process.cpuUsage();
  const found = (worlds: number): Omit<Found, "failed"> => {
    const { user, system } = process.cpuUsage(began);
    return { worlds, counts, seconds: (user + system) / 1e6 };
  };
  for (let i = 0; i < of.worlds; i++) {
    const seed = of.from + i;
    const seen = await world(database, seed);
    for (const [what, many] of Object.entries(seen.counts))
      counts[what] = (counts[what] ?? 0) + many;
    if (seen.wrong.length > 0) return { ...found(i + 1), failed: { seed, seen } };
    if ((i + 1) % 100 === 0) of.say?.(`${i + 1} worlds`);
  }
  return found(of.worlds);
}

/** The same simulation with fewer steps, as long as it has a violation. */
async function shrunk(database: SimulatedDatabase, seed: number, seen: Seen): Promise<Seen> {
  const without = new Set<number>();
  let least = seen;
  for (let step = STEPS - 1; step >= 0; step--) {
    without.add(step);
    const fewer = await world(database, seed, without);
    if (fewer.wrong.length > 0) least = fewer;
    else without.delete(step);
  }
  return least;
}

export const rig: Rig = {
  options: { worlds: 1_000, seed: 0, plant: "" },
  async run({ worlds, seed, plant = "" }, say): Promise<RigResult> {
    const database = await SimulatedDatabase.create();
    if (plant === "all") return plants(database, Number(worlds), say);
    await database.plant(plant);
    const one = Number(seed) > 0;
    const from = one ? Number(seed) : 1;
    const found = await simulated(database, { from, worlds: one ? 1 : Number(worlds), say });
    const { failed } = found;
    const wrong = failed ? failed.seen.wrong.map((line) => `seed ${failed.seed}: ${line}`) : [];
    if (failed) {
      const { seen } = failed;
      say(`seed ${failed.seed} (${seen.digest}):\n  ${seen.done.join("\n  ")}`);
      const least = await shrunk(database, failed.seed, seen);
      say(`with fewer steps: ${least.wrong[0]}\n  ${least.done.join("\n  ")}`);
    }
    const counts = {
      worlds: found.worlds,
      "worlds-per-processor-minute": Math.round((found.worlds / found.seconds) * 60),
      ...found.counts,
    };
    return { wrong, counts, seed: from };
  },
};

async function plants(
  database: SimulatedDatabase,
  worlds: number,
  say: (line: string) => void,
): Promise<RigResult> {
  const wrong: string[] = [];
  const counts: Record<string, string> = {};
  for (const name of Object.keys(PLANTS)) {
    await database.plant(name);
    const { failed, worlds: many, seconds } = await simulated(database, { from: 1, worlds });
    counts[name] = failed ? `${many} worlds, ${seconds.toFixed(1)} s` : "not found";
    say(`${name}: ${failed ? `${counts[name]}: ${failed.seen.wrong[0]}` : "NOT FOUND"}`);
    if (!failed) wrong.push(`${name} is not found`);
  }
  return { wrong, counts, seed: 1 };
}
