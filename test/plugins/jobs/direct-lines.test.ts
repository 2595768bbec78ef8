// Batches whose lines the gateway sends itself, on virtual time: gateways are killed at any moment and
// replaced. No line is sent twice, each has one result, and the sums are those of the provider.
import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fail } from "tollgate/plugin";
import type { StoredBatch } from "../../../plugins/frontends/jobs/batch-record.ts";
import { FileService } from "../../../plugins/frontends/jobs/file-service.ts";
import { LinePace } from "../../../plugins/frontends/jobs/line-pace.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import {
  directCost,
  directUsage,
  EngineWorld,
  LINE_COST,
  ownerNamed,
  type Gateway,
} from "./engine-world.ts";

const alice = ownerNamed("alice");
const CONCURRENT = 3;
const FINAL = new Set(["completed", "failed", "expired", "canceled"]);

let world: EngineWorld;
beforeEach(() =>
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  }),
);
afterEach(() => void vi.useRealTimers());

/** Runs a test in a world of its own. */
async function inWorld(run: () => Promise<void>): Promise<void> {
  world = await EngineWorld.create();
  try {
    await run();
  } finally {
    await world[Symbol.asyncDispose]();
  }
}

const start = (perMinute = 6_000): Gateway =>
  world.start({}, new LinePace({ perMinute, concurrent: CONCURRENT }));

const readBatch = async (gateway: Gateway, { record }: StoredBatch): Promise<StoredBatch> =>
  (await gateway.records.read(record.id))!;

async function whenEnded(gateway: Gateway, batch: StoredBatch): Promise<StoredBatch> {
  let now = batch;
  await world.until(async () => {
    now = await readBatch(gateway, batch);
    return FINAL.has(now.state);
  });
  return now;
}

interface ResultLine {
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly body: { line: number } } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

async function resultsOf(gateway: Gateway, batch: StoredBatch): Promise<ResultLine[]> {
  const files = new FileService(gateway.storage);
  let text = "";
  for (const file of [batch.outputFile, batch.errorFile])
    if (file !== undefined)
      for await (const piece of await files.read(alice, await files.find(alice, `file-${file}`)))
        text += Buffer.from(piece).toString();
  const lines = text.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as ResultLine);
}

const linesOf = (batch: StoredBatch, calls: ReadonlyMap<string, unknown>): number[] =>
  [...calls.keys()]
    .filter((name) => name.startsWith(`batch_${batch.record.id}.`))
    .map((name) => Number(/\.(\d+)/.exec(name)![1]));

const models = (count: number): string[] => Array.from({ length: count }, () => "direct");

interface Case {
  readonly lines: readonly ("direct" | "direct-2" | "batched")[];
  readonly kills: readonly { readonly after: number; readonly which: number }[];
  readonly faults: readonly number[];
  readonly answerMs: readonly number[];
}
const CASES: fc.Arbitrary<Case> = fc.record({
  lines: fc.array(fc.constantFrom("direct", "direct", "direct-2", "batched"), {
    minLength: 1,
    maxLength: 12,
  }),
  kills: fc.array(fc.record({ after: fc.nat(30), which: fc.nat(1) }), { maxLength: 4 }),
  faults: fc.array(fc.nat(5), { minLength: 1, maxLength: 7 }),
  answerMs: fc.array(fc.nat(20_000), { minLength: 1, maxLength: 7 }),
});

it("no line is sent twice, each has one result, and the sums are the provider's", () =>
  fc.assert(
    fc.asyncProperty(CASES, (one) => inWorld(() => runCase(one))),
    { numRuns: NIGHTLY ? 300 : 15 },
  ));

async function runCase({ lines, kills, faults, answerMs }: Case): Promise<void> {
  let count = 0;
  world.behavior.before = (method) => {
    if (method === "runLine" && faults[count++ % faults.length] === 0)
      fail("rate_limited", "Slow down.");
  };
  world.behavior.answerDirect = (line) =>
    new Promise((resolve) => setTimeout(resolve, answerMs[line % answerMs.length]));
  const alive = [start(), start()];
  const batch = await alive[0]!.create(alice, lines);
  let [step, next] = [0, kills[0]];
  let kill = 0;
  let now = batch;
  await world.until(async () => {
    if (next && ++step >= next.after) {
      alive.splice(next.which, 1)[0]!.kill();
      alive.push(start());
      [step, next] = [0, kills[++kill]];
    }
    now = await readBatch(alive[0]!, batch);
    return FINAL.has(now.state);
  });
  for (const [name, sent] of world.directCalls) expect(sent, `${name} was sent`).toBe(1);
  expect(new Set(world.directRequests).size, "each request has its own row").toBe(
    world.directRequests.length,
  );
  const results = await resultsOf(alive[0]!, now);
  expect(results.map(({ custom_id }) => custom_id).toSorted()).toEqual(
    lines.map((_, n) => `c${n}`).toSorted(),
  );
  const sent = linesOf(batch, world.directCalls);
  const direct = results.filter(({ custom_id }) =>
    lines[Number(custom_id.slice(1))]!.startsWith("direct"),
  );
  const answered = direct.flatMap(({ custom_id, response }) =>
    response?.status_code === 200 ? [Number(custom_id.slice(1)) + 1] : [],
  );
  const lost = direct.filter(({ error }) => error?.code === "batch_lost");
  expect(lost.length, "lost lines").toBeLessThanOrEqual(kills.length * CONCURRENT);
  expect(answered.length + lost.length + count429(direct)).toBe(direct.length);
  expect(
    answered.every((line) => sent.includes(line)),
    "only sent lines are answered",
  ).toBe(true);
  const sum = (of: (line: number) => number) => answered.reduce((all, one) => all + of(one), 0);
  expect(now.usage).toMatchObject({
    input: sum((line) => directUsage(line).input),
    output: sum((line) => directUsage(line).output),
  });
  const rows = [...world.directRows.values()].reduce((all, one) => all + one, 0n);
  expect(rows).toBe(sent.reduce((all, line) => all + directCost(line), 0n));
  const batched = BigInt(world.bills.size) * LINE_COST;
  expect(BigInt(now.costNano!), "the cost of the batch is that of its rows").toBe(rows + batched);
  expect(world.settled.get(`batch_${batch.record.id}`)!.costNano).toBe(0n);
  for (const gateway of alive) gateway.kill();
}

/** Lines that got the provider's error after the last attempt. */
const count429 = (lines: readonly ResultLine[]): number =>
  lines.filter(({ response }) => response?.status_code === 429).length;

it("turns keep their rate and their order, and no more than the limit run at the same time", () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 600 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.nat(20_000), { minLength: 1, maxLength: 12 }),
      async (perMinute, concurrent, durations) => {
        const pace = new LinePace({ perMinute, concurrent });
        const starts: { readonly at: number; readonly n: number }[] = [];
        let [running, most] = [0, 0];
        const { signal } = new AbortController();
        const all = durations.map(async (ms, n) => {
          const endTurn = await pace.take(signal);
          starts.push({ at: Date.now(), n });
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, ms));
          running--;
          endTurn!();
        });
        await vi.advanceTimersByTimeAsync(durations.length * 90_000);
        await Promise.all(all);
        expect(starts.map(({ n }) => n)).toEqual(durations.map((_, n) => n));
        for (const [n, { at }] of starts.slice(1).entries())
          expect(at - starts[n]!.at).toBeGreaterThanOrEqual(Math.floor(60_000 / perMinute));
        expect(most).toBeLessThanOrEqual(concurrent);
      },
    ),
    { numRuns: 50 },
  ));

it("a turn ends if it is not taken in time, or is stopped", async () => {
  const pace = new LinePace({ perMinute: 1, concurrent: 1 });
  const aborter = new AbortController();
  await pace.take(aborter.signal);
  const late = pace.take(aborter.signal, Date.now() + 10_000);
  const stopped = pace.take(aborter.signal);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await late).toBeUndefined();
  aborter.abort();
  expect(await stopped).toBeUndefined();
  expect(await pace.take(aborter.signal)).toBeUndefined();
});

it("no more lines than the limit run at the same time, over all batches", () =>
  inWorld(async () => {
    let [running, most] = [0, 0];
    world.behavior.answerDirect = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 15_000));
      running--;
    };
    const gateway = start(600);
    const batches = [
      await gateway.create(alice, models(5)),
      await gateway.create(alice, models(5)),
    ];
    for (const batch of batches) await whenEnded(gateway, batch);
    expect(world.directCalls.size).toBe(10);
    expect(most).toBe(CONCURRENT);
  }));

it("a canceled batch sends no more lines, and keeps the results that exist", () =>
  inWorld(async () => {
    const gateway = start(60);
    const batch = await gateway.create(alice, models(20));
    await world.until(() => world.directCalls.size === 3);
    await gateway.service.cancel(alice, `batch_${batch.record.id}`);
    const ended = await whenEnded(gateway, batch);
    expect(ended.state).toBe("canceled");
    const sent = world.directCalls.size;
    expect(sent).toBeLessThan(20);
    expect(ended.counts).toEqual({
      total: 20,
      succeeded: sent,
      failed: 0,
      canceled: 20 - sent,
      expired: 0,
    });
  }));

it("lines that cannot run within 24 hours expire", () =>
  inWorld(async () => {
    const releases: (() => void)[] = [];
    world.behavior.answerDirect = () => new Promise((resolve) => releases.push(resolve));
    const gateway = start();
    const batch = await gateway.create(alice, models(20));
    await world.until(() => releases.length === CONCURRENT);
    vi.setSystemTime(Date.now() + 25 * 3_600_000);
    for (const release of releases) release();
    const ended = await whenEnded(gateway, batch);
    expect(ended.state).toBe("expired");
    expect(ended.counts).toMatchObject({ succeeded: CONCURRENT, expired: 20 - CONCURRENT });
    expect(world.directCalls.size).toBe(CONCURRENT);
  }));

it("a reload waits for lines that were sent, and another generation sends the rest", () =>
  inWorld(async () => {
    let release: (() => void) | undefined;
    world.behavior.answerDirect = (line) =>
      line > 1 ? undefined : new Promise((resolve) => (release = resolve));
    const first = start(60);
    const batch = await first.create(alice, models(6));
    await world.until(() => release !== undefined);
    const ending = first.context.end();
    const second = start();
    release!();
    const ended = await whenEnded(second, batch);
    await ending;
    expect(ended.counts).toMatchObject({ total: 6, succeeded: 6, failed: 0 });
    expect([...world.directCalls.values()]).toEqual([1, 1, 1, 1, 1, 1]);
  }));

it("a gateway that stops while it sends the last lines bills no results of others", () =>
  inWorld(async () => {
    let release: (() => void) | undefined;
    // The provider's part ends while the other lines wait for their turns.
    world.behavior.answerDirect = (line) =>
      line < 5 ? undefined : new Promise((resolve) => (release = resolve));
    const first = start(1);
    const batch = await first.create(alice, ["batched", ...models(4)]);
    await world.until(() => release !== undefined);
    // The engine finds that no line is left.
    const heldAt = Date.now();
    await world.until(() => Date.now() > heldAt + 120_000);
    let isOver = false;
    void first.context.end().then(() => (isOver = true));
    release!();
    await world.until(() => isOver);
    expect(world.bills.size).toBe(0);
    expect((await whenEnded(start(), batch)).counts).toMatchObject({ total: 5, succeeded: 5 });
  }));

it("a line that was waiting to be sent again is sent by the next generation", () =>
  inWorld(async () => {
    let fails = true;
    world.behavior.before = (method) => {
      if (method === "runLine" && fails) fail("rate_limited", "Slow down.");
    };
    const first = start(60);
    const batch = await first.create(alice, models(1));
    await world.until(() => world.directRequests.length > 0);
    const ending = first.context.end();
    fails = false;
    const second = start();
    const ended = await whenEnded(second, batch);
    await ending;
    expect(ended.counts).toMatchObject({ total: 1, succeeded: 1 });
    // The row of the first request is void, so a second one with its ID would not be billed.
    const sent = world.directRequests;
    expect(sent[0]).toBe(`batch_${batch.record.id}.1`);
    expect(sent.length).toBeGreaterThan(1);
    expect(new Set(sent).size).toBe(sent.length);
    expect([...world.directRows.keys()]).toEqual([`${sent.at(-1)}.1`]);
    expect(world.directHeaders).toEqual({ "x-beta": "b".repeat(100) });
  }));

it("a batch whose lines cannot be read has the cost of all turns of its lines", () =>
  inWorld(async () => {
    const gateway = start();
    world.behavior.before = (method) => {
      // The second line is sent at its third turn.
      if (method === "runLine" && /\.2(?:-2)?$/.test(world.directRequests.at(-1)!))
        fail("rate_limited", "Slow down.");
    };
    const batch = await gateway.create(alice, models(3));
    await world.until(() => world.directRows.size === 3);
    await gateway.storage.blobs.delete(batch.lines.name);
    await world.until(
      async () =>
        FINAL.has((await readBatch(gateway, batch)).state) ||
        ((await readBatch(gateway, batch)).failures ?? 0) >= 20,
    );
    vi.setSystemTime(Date.now() + 24 * 3_600_000);
    const ended = await whenEnded(gateway, batch);
    expect([...world.directRows.keys()].some((name) => name.endsWith(".2-3.1"))).toBe(true);
    expect(ended.counts).toMatchObject({ total: 3, failed: 3 });
    expect(BigInt(ended.costNano!)).toBe(directCost(1) + directCost(2) + directCost(3));
    expect(world.settled.get(`batch_${batch.record.id}`)!.costNano).toBe(0n);
  }));

it("a line that waits for hours lets other lines run, and expires in time", () =>
  inWorld(async () => {
    world.behavior.before = (method) => {
      if (method === "runLine" && world.directRequests.length <= CONCURRENT)
        fail("rate_limited", "Slow down.", { retryAfterMs: 3 * 24 * 3_600_000 });
    };
    const gateway = start();
    const batch = await gateway.create(alice, models(20));
    vi.setSystemTime(batch.expiresAt - 4 * 3_600_000);
    const ended = await whenEnded(gateway, batch);
    expect(Date.now()).toBeLessThan(batch.expiresAt + 3_600_000);
    expect(ended.counts).toMatchObject({ succeeded: 20 - CONCURRENT, expired: CONCURRENT });
  }));

it("a line waits for as long as the gateway is busy", () =>
  inWorld(async () => {
    let isBusy = true;
    world.behavior.isBusy = () => isBusy;
    const gateway = start();
    const batch = await gateway.create(alice, models(2));
    const busyUntil = Date.now() + 2 * 3_600_000;
    await world.until(() => Date.now() > busyUntil);
    isBusy = false;
    const ended = await whenEnded(gateway, batch);
    expect(ended.counts).toMatchObject({ total: 2, succeeded: 2 });
    const name = `batch_${batch.record.id}`;
    expect(world.directRequests.toSorted()).toEqual([`${name}.1`, `${name}.2`]);
  }));

it("a line keeps its result if the store fails for a while", () =>
  inWorld(async () => {
    let answeredAt = Infinity;
    world.behavior.answerDirect = async () => {
      const from = Date.now();
      world.behavior.beforeStore = () => {
        if (Date.now() < from + 30_000) throw new Error("The store is down.");
      };
      await new Promise((resolve) => setTimeout(resolve, 90_000));
      answeredAt = Date.now();
    };
    const gateway = start();
    const batch = await gateway.create(alice, models(1));
    await world.until(() => answeredAt < Infinity);
    const ended = await whenEnded(gateway, batch);
    expect(ended.counts).toMatchObject({ total: 1, succeeded: 1, failed: 0 });
  }));

it("a provider that fails does not stop the lines that the gateway sends", () =>
  inWorld(async () => {
    let isDown = true;
    world.behavior.before = (method) => {
      if (isDown && (method === "submit" || method === "find")) fail("unavailable", "Down.");
    };
    const gateway = start();
    const batch = await gateway.create(alice, ["batched", ...models(3)]);
    await world.until(() => world.directCalls.size === 3);
    isDown = false;
    const ended = await whenEnded(gateway, batch);
    expect(ended.counts).toMatchObject({ total: 4, succeeded: 4 });
  }));

it("batches that wait for a place get one, and are canceled at once", () =>
  inWorld(async () => {
    const gateway = start(1);
    const others: StoredBatch[] = [];
    for (let n = 0; n < 32; n++) others.push(await gateway.create(alice, models(9)));
    await world.until(async () => {
      const states = await Promise.all(others.map((one) => readBatch(gateway, one)));
      return states.every(({ batches }) => batches[0]!.state === "submitted");
    });
    const [late, canceled] = [
      await gateway.create(alice, models(1)),
      await gateway.create(alice, models(1)),
    ];
    const createdAt = Date.now();
    await gateway.service.cancel(alice, `batch_${canceled.record.id}`);
    expect((await whenEnded(gateway, canceled)).state).toBe("canceled");
    expect(Date.now() - createdAt).toBeLessThan(3_600_000);
    await world.until(async () => {
      const { batches } = await readBatch(gateway, late);
      return batches[0]!.state === "submitted";
    });
    expect(Date.now() - createdAt).toBeLessThan(3_600_000);
    gateway.kill();
  }));

it("a gateway without run_lines ends the lines with an error", () =>
  inWorld(async () => {
    const gateway = start(60);
    const batch = await gateway.create(alice, models(3));
    gateway.kill();
    const other = world.start();
    const ended = await whenEnded(other, batch);
    expect(ended.state).toBe("failed");
    expect(ended.counts.failed).toBe(3);
    const results = await resultsOf(other, ended);
    expect(results[0]!.error!.message).toMatch(/does not run requests of batches/);
  }));
