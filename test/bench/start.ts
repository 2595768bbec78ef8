// Footprint of a gateway: the time from its start to a first response, as installed, in a new
// folder; its memory then; and the memory of each open stream.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lane } from "./lanes.ts";
import { ROOT, rss } from "./process.ts";
import { median, sample, type Side } from "./rounds.ts";
import { answered, tollgate } from "./targets.ts";

export interface Start {
  readonly from: "dist" | "source";
  readonly firstAnswerMs: readonly number[];
  /**
   * Resident memory of the process, including shared pages, one second after its first response.
   */
  readonly idleBytes: readonly number[];
}

export async function begun(mock: number, times: number): Promise<Start> {
  const dist = existsSync(join(ROOT, "dist/src/cli/bin.js"));
  const firstAnswerMs: number[] = [];
  const idleBytes: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    const gate = await tollgate(mock, { dist, core: undefined });
    try {
      await answered(gate);
      firstAnswerMs.push(performance.now() - began);
      await sleep(1_000);
      idleBytes.push(rss(gate.pid!));
    } finally {
      await gate.stop();
    }
  }
  return { from: dist ? "dist" : "source", firstAnswerMs, idleBytes };
}

/** KB per stream, including garbage: peak memory with all streams open, less the memory before. */
export async function weighed(side: Side, lane: Lane, times: number): Promise<number> {
  const kilobytes: number[] = [];
  for (let i = 0; i < times; i++) {
    const gate = await tollgate(side.mock.port);
    try {
      await answered(gate);
      const { mostBytes, idleBytes } = await sample(side, lane, gate);
      kilobytes.push((mostBytes - idleBytes) / 1024 / lane.connections);
    } finally {
      await gate.stop();
    }
  }
  return median(kilobytes);
}
