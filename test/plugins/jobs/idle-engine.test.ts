// What engines cost while there is nothing to do: the calls of the store that they make, on virtual
// time.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createTestContext } from "tollgate/testing";
import type { EndedJob } from "tollgate/plugin";
import { Webhooks } from "../../../plugins/frontends/jobs/reports/webhooks.ts";
import { answer, EngineWorld, ownerNamed } from "./engine-world.ts";

const HOUR_MS = 3_600_000;
/** One loop reads the time of its next record once per minute. */
const READS_PER_HOUR = 61;

let world: EngineWorld;
let calls: string[];
beforeEach(async () => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  world = await EngineWorld.create();
  calls = [];
  for (const [name, method] of Object.entries(world.jobs))
    Object.assign(world.jobs, {
      [name](...args: unknown[]) {
        calls.push(name);
        return (method as (...args: unknown[]) => Promise<unknown>)(...args);
      },
    });
});
afterEach(async () => {
  vi.useRealTimers();
  await world[Symbol.asyncDispose]();
});

it("an engine without batches reads one time per minute and writes nothing", async () => {
  world.start();
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(new Set(calls)).toEqual(new Set(["nextDueAt"]));
  expect(calls.length).toBeLessThanOrEqual(READS_PER_HOUR);
});

it("an engine whose batches have ended costs no more than one without batches", async () => {
  const gateway = world.start();
  world.behavior.results = ({ lines }) => lines.map(({ id }) => answer(id));
  const { record } = await gateway.create(ownerNamed("alice"), ["m", "n"]);
  await world.until(async () => (await gateway.records.read(record.id))?.state === "completed");
  await vi.advanceTimersByTimeAsync(60_000);
  calls.length = 0;
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(new Set(calls)).toEqual(new Set(["nextDueAt"]));
  expect(calls.length).toBeLessThanOrEqual(READS_PER_HOUR);
});

it("webhooks read one time per minute, and nothing if there is no receiver", async () => {
  const contextOf = () => ({ ...createTestContext().ctx, jobs: world.jobs });
  new Webhooks(contextOf(), []).start();
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(calls).toEqual([]);
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
  const webhooks = new Webhooks(contextOf(), [{ url: "https://a.example", secret }]);
  webhooks.start();
  await webhooks.announce({ key: "k", event: undefined } as unknown as EndedJob);
  await vi.advanceTimersByTimeAsync(HOUR_MS);
  expect(new Set(calls)).toEqual(new Set(["nextDueAt"]));
  expect(calls.length).toBeLessThanOrEqual(READS_PER_HOUR);
});
