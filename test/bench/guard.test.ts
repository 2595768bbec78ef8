// Detects a large loss of speed. It compares CPU time of all threads with the bare proxy, round by
// round in one run, because a busy machine hardly changes it. It uses the best of some rounds,
// which a busy machine changes least.
import { afterAll, beforeAll, expect, test } from "vitest";
import { join } from "node:path";
import { existsSync } from "node:fs";
import type { ChildProcess } from "node:child_process";
import { laneOf } from "./lanes.ts";
import { ended, run, serving } from "./process.ts";
import { measure, sample, type Side } from "./rounds.ts";
import { bare, tollgate, type Target } from "./targets.ts";

/** A quarter above the best of five short rounds, which is 2.0 and 1.2. */
const MOST = { "json-1k": 2.5, "sse-full": 1.5 };

const LENGTH = { ms: 500, events: 0 };
const ROUNDS = 5;

let mock: Awaited<ReturnType<typeof serving>>;
let driver: ChildProcess;
let side: Side;
const targets: Target[] = [];

const measurable = existsSync(`/proc/self/task/${process.pid}/schedstat`);

beforeAll(async () => {
  if (!measurable) return;
  mock = await serving("mock.ts", [], 1);
  driver = run([join(import.meta.dirname, "load.ts")], 1);
  side = { driver, mock };
  targets.push(
    await bare("agent", mock.port),
    await tollgate(mock.port, { durability: "relaxed" }),
  );
  const first = { ...laneOf("json-1k", LENGTH), ms: 2_000 };
  for (const target of targets) await sample(side, first, target);
});

afterAll(async () => {
  for (const target of targets) await target.stop();
  if (measurable) await Promise.all([ended(driver), ended(mock.child)]);
});

// Other work on a machine may distort a round, but seldom all of them. A loss of speed is in each
// round.
test.skipIf(!measurable).for(["json-1k", "sse-full"] as const)("%s", { retry: 1 }, async (name) => {
  const lane = laneOf(name, LENGTH);
  const [agent, ours] = await measure(side, lane, targets, ROUNDS);
  // A starved ledger may reject a few requests. A run without responses proves nothing.
  for (const { errors, requests, firstError } of ours!.samples)
    expect(errors, firstError).toBeLessThan(requests / 10);
  const rounds = ours!.samples.map(({ cpu }, i) => cpu / agent!.samples[i]!.cpu);
  expect(Math.min(...rounds), `rounds: ${rounds.join(", ")}`).toBeLessThan(MOST[name]);
});
