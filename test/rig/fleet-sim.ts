// The fleet's simulator: many small worlds on virtual time. `--seed N` runs one world again and prints what was done in it; `--plant all` looks for each planted
// defect.
import { PLANTS } from "./fleet-plants.ts";
import type { Rig, Verdict } from "./rig.ts";
import { SimulatedDatabase } from "./sim/database.ts";
import { world, type Seen } from "./sim/world.ts";

export interface Worlds {
  readonly from: number;
  readonly worlds: number;
  /** Ends after this much real time. */
  readonly withinMs?: number;
  readonly plant?: string;
  readonly say?: (line: string) => void;
}

export interface Found {
  readonly worlds: number;
  readonly counts: Record<string, number>;
  readonly ms: number;
  readonly failed?: { readonly seed: number; readonly seen: Seen };
}

/** World after world until one does not hold. */
export async function simulated(of: Worlds): Promise<Found> {
  const { from, withinMs = Infinity, plant = "", say } = of;
  const database = await SimulatedDatabase.create(plant);
  const counts: Record<string, number> = {};
  const began = process.hrtime.bigint();
  const past = () => Number((process.hrtime.bigint() - began) / 1_000_000n);
  try {
    for (let i = 0; i < of.worlds && past() < withinMs; i++) {
      const seen = await world(database, from + i);
      for (const [what, many] of Object.entries(seen.counts))
        counts[what] = (counts[what] ?? 0) + many;
      if (seen.wrong.length > 0)
        return { worlds: i + 1, counts, ms: past(), failed: { seed: from + i, seen } };
      if ((i + 1) % 200 === 0) say?.(`${i + 1} worlds`);
    }
    return { worlds: of.worlds, counts, ms: past() };
  } finally {
    await database.close();
  }
}

export const rig: Rig = {
  options: { worlds: 1_000, seed: -1, plant: "" },
  async run({ worlds, seed, plant = "" }, say): Promise<Verdict> {
    const one = Number(seed) >= 0;
    const from = one ? Number(seed) : 1;
    const found = await simulated({ from, worlds: one ? 1 : Number(worlds), plant, say });
    const { failed, counts, ms } = found;
    if (failed)
      say(`seed ${failed.seed} (${failed.seen.digest}):\n  ${failed.seen.done.join("\n  ")}`);
    const wrong = failed ? failed.seen.wrong.map((line) => `seed ${failed.seed}: ${line}`) : [];
    const perMinute = Math.round((found.worlds / ms) * 60_000);
    return {
      wrong,
      counts: { worlds: found.worlds, "worlds-per-minute": perMinute, ...counts },
      seed: from,
    };
  },
};
void PLANTS;
