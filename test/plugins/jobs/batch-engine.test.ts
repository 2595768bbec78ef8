// The batch engine on virtual time: how long batches are kept, results that cannot be read, and the
// size of records.
import { readdir } from "node:fs/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fail, type Price } from "tollgate/plugin";
import type { StoredBatch } from "../../../plugins/frontends/jobs/batch-record.ts";
import { CREATE_MS } from "../../../plugins/frontends/jobs/batch-service.ts";
import { MAX_JOB_DATA_BYTES } from "../../../src/store/job-table.ts";
import {
  answer,
  EngineWorld,
  LINE_COST,
  LINE_HOLD,
  ownerNamed,
  randomText,
  type Gateway,
} from "./engine-world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const alice = ownerNamed("alice");
let world: EngineWorld;
beforeEach(async () => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  world = await EngineWorld.create();
});
afterEach(async () => {
  vi.useRealTimers();
  await world[Symbol.asyncDispose]();
});

const FINAL = ["completed", "failed", "expired", "canceled"];
async function ended(gateway: Gateway, { record }: StoredBatch): Promise<StoredBatch> {
  let batch: StoredBatch | undefined;
  await world.until(async () => {
    batch = await gateway.records.read(record.id);
    return FINAL.includes(batch!.state);
  });
  return batch!;
}

/** Waits until the results were read 20 times without success, and lets the rest of the day pass. */
async function failForADay(gateway: Gateway, { record }: StoredBatch): Promise<StoredBatch> {
  await world.until(async () => ((await gateway.records.read(record.id))!.failures ?? 0) >= 20);
  expect((await gateway.records.read(record.id))!.state).toBe("reading");
  vi.setSystemTime(Date.now() + DAY_MS);
  return ended(gateway, { record } as StoredBatch);
}

it("an ended batch is listed by every gateway until its time is over, and then deleted", async () => {
  const first = world.start({ batchMs: HOUR_MS });
  const { record } = await ended(first, await first.create(alice, ["m"]));
  first.kill();
  const second = world.start();
  const end = Date.now();
  const listed = async () =>
    (await second.records.list(alice, { limit: 9, format: "openai" })).items.map(
      (one) => one.record.id,
    );
  await world.until(() => Date.now() > end + 0.9 * HOUR_MS);
  expect(await listed()).toEqual([record.id]);
  expect(await second.service.find(alice, `batch_${record.id}`)).toMatchObject({
    state: "completed",
  });
  await world.until(() => Date.now() > end + 1.1 * HOUR_MS);
  expect(await listed()).toEqual([]);
});

it("a list goes on behind a batch that was deleted", async () => {
  const gateway = world.start();
  const made: string[] = [];
  for (let n = 0; n < 4; n++) {
    made.unshift((await ended(gateway, await gateway.create(alice, ["m"]))).record.id);
    vi.setSystemTime(Date.now() + 1_000);
  }
  await gateway.service.delete(alice, `batch_${made[1]}`);
  const after = `batch_${made[1]}`;
  const page = await gateway.service.list(alice, { limit: 1, after, format: "openai" });
  expect(page).toMatchObject({ items: [{ record: { id: made[2] } }], hasMore: true });
  const bob = ownerNamed("bob");
  for (const [owner, id] of [
    [bob, after],
    [alice, `batch_${"A".repeat(32)}`],
    [alice, "x"],
  ] as const)
    expect(() => gateway.service.list(owner, { limit: 1, after: id, format: "openai" })).toThrow(
      /Unknown batch ID/,
    );
});

it("a list goes on behind a batch whose ID contains no time", async () => {
  const gateway = world.start();
  const { data } = (await world.jobs.find((await gateway.create(alice, ["m"])).record.id))!;
  const made: string[] = [];
  for (let n = 0; n < 5; n++) {
    const id = gateway.storage.secrets.createId("batch", alice.name);
    await gateway.records.create(alice, id, {
      state: "completed",
      data: JSON.parse(data),
      createdAt: Date.now() - n * 1_000 - 1_000,
      dueAt: undefined,
    });
    made.push(id);
  }
  const format = "openai";
  for (const [n, id] of made.entries()) {
    const after = `batch_${id}`;
    const { items } = await gateway.service.list(alice, { limit: 9, after, format });
    expect(items.map(({ record }) => record.id)).toEqual(made.slice(n + 1));
  }
});

it("results that cannot be read for a day end the batch, and only lines without a bill are estimated", async () => {
  const gateway = world.start();
  world.behavior.results = function* ({ lines }) {
    yield answer(lines[0]!.id);
    yield answer(lines[1]!.id);
    fail("upstream", "The file is damaged.");
  };
  const batch = await failForADay(gateway, await gateway.create(alice, ["m", "m", "m", "m"]));
  expect(batch).toMatchObject({
    state: "failed",
    batches: [{ outcome: "unreadable" }],
    counts: { total: 4, succeeded: 2, failed: 2 },
  });
  expect([...world.settled.values()]).toEqual([
    { costNano: 2n * LINE_HOLD, outcome: "unreadable" },
  ]);
});

it("a part whose results cannot be read does not affect other parts", async () => {
  const gateway = world.start();
  world.behavior.results = ({ lines }) =>
    lines[0]!.body.includes('"bad"')
      ? fail("upstream", "Damaged.")
      : lines.map(({ id }) => answer(id));
  const batch = await failForADay(gateway, await gateway.create(alice, ["good", "bad", "good"]));
  expect(batch).toMatchObject({ state: "completed", counts: { succeeded: 2, failed: 1 } });
  expect([...world.settled.values()]).toMatchObject([{ costNano: LINE_HOLD }]);
});

it("lines that were billed before the provider deleted the results are not estimated", async () => {
  const gateway = world.start();
  let reads = 0;
  world.behavior.results = function* ({ lines }) {
    if (++reads > 1) fail("not_found", "Deleted.");
    yield answer(lines[0]!.id);
    fail("unavailable", "Cut off.");
  };
  const batch = await ended(gateway, await gateway.create(alice, ["m", "m", "m"]));
  expect(batch.counts).toMatchObject({ failed: 3 });
  expect([...world.settled.values()]).toMatchObject([{ costNano: 2n * LINE_HOLD }]);
  expect(batch.costNano).toBe((LINE_COST + 2n * LINE_HOLD).toString());
});

it("failures of the gateway do not use up the reads after which a missing line is lost", async () => {
  const gateway = world.start();
  let reads = 0;
  world.behavior.results = ({ lines }) => {
    const count = ++reads <= 10 ? lines.length - 1 : lines.length;
    return lines.slice(0, count).map(({ id }) => answer(id));
  };
  world.behavior.before = (method) => {
    if (method === "settleLine" && reads < 10) fail("unavailable", "The ledger does not respond.");
  };
  const batch = await ended(gateway, await gateway.create(alice, ["m", "m", "m"]));
  expect(reads).toBeGreaterThan(10);
  expect(batch.counts).toMatchObject({ total: 3, succeeded: 3, failed: 0 });
  expect([...world.settled.values()]).toEqual([{ costNano: 0n, outcome: "ok" }]);
});

it("a line that the provider never returns is lost after some reads", async () => {
  const gateway = world.start();
  let reads = 0;
  world.behavior.results = ({ lines }) => {
    reads++;
    return lines.slice(1).map(({ id }) => answer(id));
  };
  const batch = await ended(gateway, await gateway.create(alice, ["m", "m"]));
  expect(reads).toBe(7);
  expect(batch.counts).toMatchObject({ succeeded: 1, failed: 1 });
  expect(batch.costNano).toBe((LINE_COST + LINE_HOLD).toString());
});

it("each part has its own reads after which its missing lines are lost", async () => {
  const gateway = world.start();
  const reads = new Map<string, number>();
  // The first part never returns a line. The second part returns all lines at its third read.
  world.behavior.results = ({ key, lines }) => {
    const count = (reads.get(key) ?? 0) + 1;
    reads.set(key, count);
    const isWhole = lines[0]!.body.includes('"late"') && count > 2;
    return lines.slice(isWhole ? 0 : 1).map(({ id }) => answer(id));
  };
  const batch = await ended(gateway, await gateway.create(alice, ["never", "never", "late"]));
  expect(batch.counts).toMatchObject({ total: 3, succeeded: 2, failed: 1 });
  expect(batch.costNano).toBe((2n * LINE_COST + LINE_HOLD).toString());
  expect([...world.settled.values()]).toMatchObject([{ costNano: LINE_HOLD }]);
});

it.each(["deleted", "damaged", "no lines"] as const)(
  "a call that was left open is settled if its result does not come again: %s",
  async (how) => {
    const gateway = world.start();
    let attempt: string | undefined;
    world.behavior.results = () => {
      if (attempt !== undefined && how === "deleted") return fail("not_found", "Deleted.");
      return fail("upstream", "Damaged.");
    };
    const created = await gateway.create(alice, ["m", "m"]);
    const { record } = created;
    attempt = record.attempt!;
    world.openCalls.add(`${attempt}.1.1`);
    if (how === "no lines") {
      await world.until(async () => (await gateway.records.read(record.id))!.state === "reading");
      await gateway.storage.blobs.delete(created.lines.name);
    }
    const batch =
      how === "deleted" ? await ended(gateway, created) : await failForADay(gateway, created);
    expect(batch.costNano).toBe((2n * LINE_HOLD).toString());
    expect([...world.settled].map(([name, { costNano }]) => [name, costNano])).toEqual([
      [`${attempt}.1.1`, LINE_HOLD],
      [attempt, LINE_HOLD],
    ]);
  },
);

it("a record fits in a store, whatever the provider returns", async () => {
  const gateway = world.start();
  world.behavior.reference = (key) => key + "r".repeat(2_048 - key.length);
  world.behavior.status = () => ({
    state: "ended",
    outcome: "failed",
    message: "x".repeat(100_000),
  });
  const sizes: number[] = [];
  const { put } = world.jobs;
  world.jobs.put = (record) => {
    sizes.push(Buffer.byteLength(record.data));
    return put(record);
  };
  const models = Array.from({ length: 12 }, (_, n) => `model-${n}-${randomText(200)}`);
  const batch = await ended(gateway, await gateway.create(alice, models));
  expect(batch.state).toBe("failed");
  expect(Math.max(...sizes)).toBeLessThan(MAX_JOB_DATA_BYTES);
  const metadata = Object.fromEntries(
    Array.from({ length: 16 }, (_, n) => [`${n}`, "\u0001".repeat(512)]),
  );
  await expect(gateway.create(alice, models, { metadata })).rejects.toMatchObject({
    message: expect.stringContaining("larger than"),
  });
  expect(world.reserved.size).toBe(1);
});

it("a batch whose lines cannot be read for a day ends, and only submitted lines without a bill are estimated", async () => {
  const gateway = world.start();
  world.behavior.results = function* ({ lines }) {
    yield answer(lines[0]!.id);
    fail("unavailable", "Cut off.");
  };
  const created = await gateway.create(alice, ["good", "good", "good", "bad"]);
  await gateway.storage.blobs.delete(created.batches[1]!.input.name);
  await world.until(() => world.bills.size === 1);
  await gateway.storage.blobs.delete(created.lines.name);
  const batch = await failForADay(gateway, created);
  expect(batch).toMatchObject({
    state: "expired",
    batches: [{ outcome: "unreadable" }, { outcome: "expired" }],
    counts: { total: 4, succeeded: 0, failed: 3, expired: 1 },
  });
  expect([...world.settled.values()]).toEqual([
    { costNano: 2n * LINE_HOLD, outcome: "unreadable" },
  ]);
  expect(batch.costNano).toBe((LINE_COST + 2n * LINE_HOLD).toString());
});

it("a part that was not sent, because its file cannot be read, expires without a bill", async () => {
  const gateway = world.start();
  const created = await gateway.create(alice, ["good", "bad", "good"]);
  await gateway.storage.blobs.delete(created.batches[1]!.input.name);
  const batch = await ended(gateway, created);
  expect(batch).toMatchObject({
    state: "expired",
    batches: [{ outcome: "completed" }, { outcome: "expired" }],
    counts: { succeeded: 2, expired: 1, failed: 0 },
  });
  expect([...world.settled.values()]).toMatchObject([{ costNano: 0n }]);
});

it("a batch whose creation fails after its reservation releases it, and leaves no lines", async () => {
  const gateway = world.start();
  const start = Date.now();
  let made: string | undefined;
  const { put } = world.jobs;
  world.jobs.put = (record) => {
    made = record.id;
    return record.state === "running" ? fail("unavailable", "The store is down.") : put(record);
  };
  await expect(gateway.create(alice, ["m"])).rejects.toThrow("The store is down.");
  await world.until(async () => (await gateway.records.read(made!)) === undefined);
  expect([...world.settled]).toEqual([[`batch_${made}`, { costNano: 0n, outcome: "canceled" }]]);
  expect(world.reserved.size).toBe(1);
  expect(await readdir(world.dir, { recursive: true })).toEqual([]);
  expect(Date.now()).toBeLessThan(start + CREATE_MS);
});

it("the price of the time when the batch was created is passed to each line", async () => {
  const priceOf = (usd: string): Price => ({ lines: [{ unit: "input", usd, per: 1_000_000 }] });
  const gateway = world.start();
  world.behavior.price = priceOf("1");
  const old = priceOf("1");
  const created = await gateway.create(alice, ["m", "m", "n"]);
  world.behavior.price = priceOf("2");
  await ended(gateway, created);
  const bills = [...world.bills.values()].map(([bill]) => bill!.price);
  expect(bills).toEqual([old, old, old]);
});

it("an idle engine sends one statement per minute to the store", async () => {
  const gateway = world.start();
  const ended1 = await ended(gateway, await gateway.create(alice, ["m"]));
  await world.until(() => Date.now() > ended1.times.completed! + 5 * 60_000);
  let statements = 0;
  for (const name of ["put", "find", "list", "lease", "nextDueAt", "delete"] as const) {
    const original = world.jobs[name] as (...args: unknown[]) => Promise<never>;
    world.jobs[name] = (...args: unknown[]) => {
      statements++;
      return original(...args);
    };
  }
  const start = Date.now();
  await world.until(() => Date.now() >= start + HOUR_MS);
  expect(statements).toBeLessThanOrEqual(61);
});
