// Small random simulations, one after another: gateways on one budget, with possible faults,
// against the real admission function of a real database. The seed is printed with each violation.
// With a planted defect, the result is the number of simulations that find it.
import { startPostgres } from "../../kit/database/postgres.ts";
import { makePostgres } from "../../plugins/stores/postgres-under-test.ts";
import { world } from "../../plugins/stores/postgres/failover/random-fleets.ts";
import { planted, PLANTS } from "./fleet-sql-mutants.ts";
import type { Rig, RigResult } from "../rig.ts";

export async function fleetWorlds(of: {
  worlds: number;
  seed: number;
  plant: string;
  say: (line: string) => void;
}): Promise<RigResult> {
  await using postgres = await startPostgres({ settings: ["fsync=off"] });
  const url = await postgres.database();
  const made = await makePostgres(url);
  await made.store.open({ instance: "makes the tables" });
  await made.dispose();
  await planted(of.plant, (text) => postgres.sql(url, text));
  const wrong: string[] = [];
  let [worlds, events] = [0, 0];
  while (worlds < of.worlds && wrong.length === 0) {
    const seed = of.seed + worlds++;
    const seen = await world(url, seed);
    events += seen.done.length;
    if (seen.wrong.length > 0) {
      of.say(`seed ${seed}:\n  ${seen.done.join("\n  ")}`);
      wrong.push(`seed ${seed}: ${seen.wrong.join("; ")}`);
    } else if (worlds % 100 === 0) of.say(`${worlds} worlds`);
  }
  return { wrong, counts: { worlds, events }, seed: of.seed };
}

export const rig: Rig = {
  options: { worlds: 1_000, seed: Date.now() % 1e6, plant: "" },
  async run({ worlds, seed, plant = "" }, say): Promise<RigResult> {
    const of = { worlds: Number(worlds), seed: Number(seed), say };
    if (plant !== "all") return fleetWorlds({ ...of, plant });
    const counts: Record<string, number | string> = {};
    for (const name of Object.keys(PLANTS)) {
      const seen = await fleetWorlds({ ...of, plant: name });
      counts[name] = seen.wrong.length > 0 ? seen.counts["worlds"]! : "not found";
      say(`${name}: ${seen.wrong[0] ?? "not found"}`);
    }
    return { wrong: [], counts, seed: of.seed };
  },
};
