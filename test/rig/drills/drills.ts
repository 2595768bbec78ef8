// Failures that every operator meets, on a real gateway of two processes: database outage, restart,
// full disk, certificate, slow provider, runaway key, rejected reload, lost terminal. Each ends
// with its page of the runbook.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../kit/process/program.ts";
import { DRILLS } from "./all.ts";
import type { Rig } from "../rig.ts";

export const rig: Rig = {
  options: { only: "", seed: 1 },
  async run({ only = "", seed = "1" }, say) {
    const chosen = Object.entries(DRILLS).filter(([name]) => only === "" || name === only);
    const bad: string[] = [];
    let skipped = 0;
    for (const [name, { page, run }] of chosen) {
      const file = `docs/runbook/${page}.md`;
      if (!existsSync(join(root, file))) bad.push(`${name}: there is no ${file}`);
      const found = await run().catch((error: unknown) => [String(error)]);
      if (found === undefined) skipped++;
      bad.push(...(found ?? []).map((what) => `${name}: ${what}`));
      const how = found === undefined ? "skipped" : found.length === 0 ? "PASS" : "FAIL";
      say(`${how.padEnd(8)}${name.padEnd(16)}${file}`);
    }
    return { wrong: bad, counts: { drills: chosen.length, skipped }, seed: Number(seed) };
  },
};
