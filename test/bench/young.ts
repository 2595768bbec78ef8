// Cost of a process before its compilers have settled: requests after the first few thousand,
// compared with later ones of the same process.
import type { Lane } from "./lanes.ts";
import { sample, type Side } from "./rounds.ts";
import { tollgate } from "./targets.ts";

/** Number of requests before the measurement, and during it. */
const REQUESTS = 5_000;

/** CPU of an early request relative to a later one, by process. */
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
