// The bounded queue and its batcher: nothing is lost but what is counted, one batch is delivered at a time, and everything stays in order.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BatchLoop } from "../../../src/lib/queue/batch-loop.ts";
import { BatchQueue } from "../../../src/lib/queue/batch-queue.ts";
import { BoundedQueue } from "../../../src/lib/queue/bounded-queue.ts";
import { settlesWithin } from "../../../src/lib/time/settles-within.ts";
import { trialCount } from "../../kit/law-effort.ts";

describe("a bounded queue", () => {
  it("keeps the order and its capacity, and counts each item that it drops", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("refuse", "drop_oldest"),
        fc.record({
          maxItems: fc.integer({ min: 1, max: 6 }),
          maxBytes: fc.integer({ min: 1, max: 30 }),
        }),
        fc.array(
          fc.oneof(
            fc.record({ push: fc.integer({ min: 0, max: 12 }) }),
            fc.record({
              take: fc.integer({ min: 1, max: 4 }),
              bytes: fc.integer({ min: 1, max: 30 }),
            }),
          ),
          { maxLength: 60 },
        ),
        (overflow, limits, steps) => {
          const queue = new BoundedQueue<{ n: number; size: number }>({
            ...limits,
            overflow: overflow as "refuse",
            sizeOf: ({ size }) => size,
          });
          const taken: number[] = [];
          let pushed = 0;
          for (const step of steps) {
            if ("push" in step) {
              const before = queue.dropped;
              const isQueued = queue.push({ n: pushed++, size: step.push });
              if (overflow === "refuse") expect(queue.dropped - before).toBe(isQueued ? 0 : 1);
              else if (step.push <= limits.maxBytes) expect(isQueued).toBe(true);
            } else {
              const batch = queue.take(step.take, step.bytes);
              expect(batch.length).toBeLessThanOrEqual(step.take);
              const bytes = batch.reduce((sum, { size }) => sum + size, 0);
              expect(bytes <= step.bytes || batch.length === 1).toBe(true);
              taken.push(...batch.map(({ n }) => n));
            }
            expect(queue.length).toBeLessThanOrEqual(limits.maxItems);
            expect(queue.bytes).toBeLessThanOrEqual(limits.maxBytes);
          }
          taken.push(...queue.take().map(({ n }) => n));
          expect(queue.bytes).toBe(0);
          expect(taken).toEqual(taken.toSorted((a, b) => a - b));
          expect(taken.length + queue.dropped).toBe(pushed);
        },
      ),
    );
  });

  it("lets a caller that waits for room add its item, and says that it is full", () => {
    const queue = new BoundedQueue<number>({ maxItems: 2, overflow: "wait" });
    for (const n of [1, 2, 3]) expect(queue.push(n)).toBe(true);
    expect(queue.isFull).toBe(true);
    expect(queue.dropped).toBe(0);
    expect(queue.take(2)).toEqual([1, 2]);
    expect(queue.isFull).toBe(false);
  });

  it("puts items back at the front, however many, and removes single ones", () => {
    const queue = new BoundedQueue<number>({ sizeOf: (n) => n });
    queue.push(9);
    queue.putBack(Array.from({ length: 200_000 }, () => 1));
    expect(queue.length).toBe(200_001);
    expect(queue.bytes).toBe(200_009);
    expect(queue.remove((n) => n === 1)).toHaveLength(200_000);
    expect(queue.take()).toEqual([9]);
  });
});

describe("a batch loop", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const looping = (schedule: ConstructorParameters<typeof BatchLoop>[1]) => {
    const batches: number[] = [];
    let pending = 0;
    const loop = new BatchLoop(
      {
        pending: () => pending,
        step() {
          batches.push(pending);
          pending = 0;
        },
      },
      schedule,
    );
    const add = (n = 1) => {
      pending += n;
      loop.wake();
    };
    return { loop, add, batches };
  };

  it("without a delay processes an item within the call", () => {
    const { add, batches } = looping({});
    add();
    add(2);
    expect(batches).toEqual([1, 2]);
  });

  it("with a delay of 0 processes what one event loop turn added", async () => {
    const { add, batches } = looping({ delayMs: 0 });
    add();
    add();
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([2]);
  });

  it("waits for more items, but not with a full batch", async () => {
    const { add, batches } = looping({ delayMs: 100, fullAt: 3 });
    add();
    await vi.advanceTimersByTimeAsync(99);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([1]);
    add(3);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([1, 3]);
  });

  it("does not delay the first item after a pause, if the delay is between batches", async () => {
    const { add, batches } = looping({ delayMs: 100, delayFrom: "last_batch" });
    add();
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([1]);
    add();
    add();
    await vi.advanceTimersByTimeAsync(99);
    expect(batches).toEqual([1]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([1, 2]);
  });

  it("processes nothing after it was stopped", async () => {
    const { loop, add, batches } = looping({ delayMs: 10 });
    add();
    loop.stop();
    add();
    await vi.advanceTimersByTimeAsync(100);
    expect(await loop.drain()).toBe(false);
    expect(batches).toEqual([]);
  });

  it("drains everything at once, before `drain` returns if no batch takes time", () => {
    const { loop, add, batches } = looping({ delayMs: 10_000 });
    add(5);
    void loop.drain();
    expect(batches).toEqual([5]);
  });
});

describe("a batch queue", () => {
  it("delivers every item once, in order, one batch at a time, whatever fails", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ many: fc.nat(20), turns: fc.nat(2) }), { maxLength: 8 }),
        fc.constantFrom(undefined, 0, 1),
        fc.func(fc.constantFrom("sync", "async", "again", "throws", "rejects")),
        async (bursts, delayMs, outcomeOf) => {
          const got: number[] = [];
          const lost: number[] = [];
          let inside = 0;
          let calls = 0;
          const queue = new BatchQueue<number>({
            delayMs,
            fullAt: 7,
            batchItems: 5,
            deliver(batch) {
              expect(++inside).toBe(1);
              expect(batch.length).toBeGreaterThan(0);
              expect(batch.length).toBeLessThanOrEqual(5);
              const outcome = outcomeOf(calls++);
              if (outcome === "sync" || outcome === "throws") {
                inside--;
                (outcome === "sync" ? got : lost).push(...batch);
                if (outcome === "throws") throw new Error("no");
                return;
              }
              return (async () => {
                await new Promise(setImmediate);
                inside--;
                const kept = outcome === "again" ? batch.slice(0, -1) : batch;
                if (outcome === "again") {
                  got.push(kept[0] ?? batch[0]!);
                  return batch.slice(1);
                }
                (outcome === "async" ? got : lost).push(...batch);
                if (outcome === "rejects") throw new Error("no");
              })();
            },
          });
          let n = 0;
          for (const { many, turns } of bursts) {
            for (let i = 0; i < many; i++) queue.push(n++);
            for (let i = 0; i < turns; i++) await new Promise(setImmediate);
          }
          expect(await queue.drain()).toBe(true);
          expect(got).toEqual(got.toSorted((a, b) => a - b));
          expect([...got, ...lost].toSorted((a, b) => a - b)).toEqual(
            Array.from({ length: n }, (_, i) => i),
          );
          expect(queue.counts).toEqual({ queued: 0, delivered: got.length, dropped: lost.length });
        },
      ),
      { numRuns: trialCount(200) },
    );
  });

  it("keeps a caller waiting while it is full", async () => {
    const gate = Promise.withResolvers<void>();
    const got: string[] = [];
    const queue = new BatchQueue<string>({
      maxBytes: 3,
      sizeOf: (text) => text.length,
      overflow: "wait",
      batchBytes: 2,
      async deliver(batch) {
        await gate.promise;
        got.push(batch.join(""));
      },
    });
    queue.push("a");
    expect(queue.whenRoom()).toBeUndefined();
    for (const text of ["b", "c", "d"]) queue.push(text);
    const room = queue.whenRoom();
    expect(room).toBeInstanceOf(Promise);
    gate.resolve();
    await room;
    await queue.drain();
    expect(got).toEqual(["a", "bc", "d"]);
  });

  it("gives up draining when the time is over, and keeps what is left", async () => {
    const queue = new BatchQueue<number>({ batchItems: 1, deliver: () => new Promise(() => {}) });
    queue.push(1);
    queue.push(2);
    expect(await queue.drain(1)).toBe(false);
    expect(queue.counts).toEqual({ queued: 1, delivered: 0, dropped: 0 });
  });

  it("continues with the items that an earlier queue left", async () => {
    const kept = new BoundedQueue<number>({ maxItems: 2, overflow: "drop_oldest" });
    const first = new BatchQueue<number>({ queue: kept, delayMs: 10_000, deliver() {} });
    for (const n of [1, 2, 3]) first.push(n);
    first.stop();
    const got: number[] = [];
    const second = new BatchQueue<number>({
      queue: kept,
      deliver: (batch) => void got.push(...batch),
    });
    await second.drain();
    expect(got).toEqual([2, 3]);
    expect(second.counts.dropped).toBe(1);
  });
});

describe("a deadline", () => {
  it("tells whether a promise settled in time, and rejects as it does", async () => {
    expect(await settlesWithin(60_000, Promise.resolve())).toBe(true);
    expect(await settlesWithin(Infinity, Promise.resolve())).toBe(true);
    expect(await settlesWithin(1, new Promise(() => {}))).toBe(false);
    await expect(settlesWithin(60_000, Promise.reject(new Error("no")))).rejects.toThrow("no");
  });
});
