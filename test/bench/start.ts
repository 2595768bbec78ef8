// From nothing to a first answer, as installed: from dist, in a new folder; and what it weighs then.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT, rss } from "./process.ts";
import { median } from "./rounds.ts";
import { tollgate } from "./targets.ts";

export interface Start {
  readonly from: "dist" | "source";
  readonly firstAnswerMs: number;
  readonly idleBytes: number;
}

export async function begun(mock: number, times: number): Promise<Start> {
  const dist = existsSync(join(ROOT, "dist/src/cli/bin.js"));
  const took: number[] = [];
  const weight: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    const gate = await tollgate(mock, { dist, core: undefined });
    const answer = await fetch(`http://127.0.0.1:${gate.port}${gate.path}`, {
      method: "POST",
      headers: { ...gate.headers, "content-type": "application/json" },
      body: JSON.stringify({
        model: "up/bench-s400",
        messages: [{ role: "user", content: "hello" }],
      }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    await answer.arrayBuffer();
    took.push(performance.now() - began);
    await sleep(500);
    weight.push(rss(gate.pid!));
    await gate.stop();
  }
  return { from: dist ? "dist" : "source", firstAnswerMs: median(took), idleBytes: median(weight) };
}
