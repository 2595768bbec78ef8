// How dear a process is before its compilers have settled: its requests from the first some thousand on, against what the same
// process needs later.
import type { Lane } from "./lanes.ts";
import { sample, type Side } from "./rounds.ts";
import { tollgate } from "./targets.ts";

/** So many requests go before, and as many are looked at. */
const REQUESTS = 5_000;

/** CPU of a young request over that of a settled one, process by process. */
export async function young(
  side: Side,
  lane: Lane,
  of: { times: number; settleMs: number },
): Promise<number[]> {
  const ratios: number[] = [];
  const few = { ...lane, ms: 60_000, most: REQUESTS };
  for (let i = 0; i < of.times; i++) {
    const gate = await tollgate(side.mock.port);
    try {
      await sample(side, few, gate);
      const { cpu } = await sample(side, few, gate);
      await sample(side, { ...lane, ms: of.settleMs }, gate);
      const settled = await sample(side, lane, gate);
      ratios.push(cpu / settled.cpu);
    } finally {
      await gate.stop();
    }
  }
  return ratios;
}
