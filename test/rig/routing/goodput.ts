// Goodput and load for each failure pattern in each setup: 10,000 requests each, in virtual time.
import { judged, load, PATTERNS, SHAPES } from "../../pipeline/goodput/law.ts";
import type { Rig } from "../rig.ts";

export const rig: Rig = {
  options: { requests: 10_000, seed: 1 },
  async run({ requests, seed }, say) {
    const wrong: string[] = [];
    for (const [name, upstreams] of Object.entries(PATTERNS))
      for (const shape of SHAPES) {
        const of = load({ ...shape, requests: Number(requests), seed: Number(seed) });
        const here = await judged(of, upstreams);
        const where = `${name}: ${shape.targets} targets, ${shape.processes} processes`;
        for (const line of here) wrong.push(`${where}: ${line}`);
        say(`${here.length === 0 ? "ok  " : "bad "} ${where}`);
      }
    const runs = Object.keys(PATTERNS).length * SHAPES.length;
    return { wrong, counts: { runs, requests: Number(requests) }, seed: Number(seed) };
  },
};
