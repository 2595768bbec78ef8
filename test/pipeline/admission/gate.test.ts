import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AdaptiveLimit, MIN_LIMIT } from "../../../src/pipeline/admission/load-monitor.ts";
import { AdmissionQueue } from "../../../src/pipeline/admission/admission-queue.ts";
import { getFault } from "../../../src/model/error.ts";
import { trialCount } from "../../kit/law-effort.ts";

const EASY = { start() {}, isLagging: false, isOverloaded: false };

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** An admission queue, and the result of each request. */
function scene(most: number, waitMs = 1_000) {
  const gate = new AdmissionQueue({ maxConcurrent: most, maxQueueWaitMs: waitMs }, EASY);
  const came: { who: string; state: "in" | "waits" | "refused"; after: number }[] = [];
  return {
    gate,
    came,
    enter(who: string) {
      const one = { who, state: "waits" as (typeof came)[number]["state"], after: 0 };
      came.push(one);
      const began = performance.now();
      const over = (state: "in" | "refused") => {
        one.state = state;
        one.after = performance.now() - began;
      };
      try {
        const turn = gate.acquire(who);
        if (!turn) over("in");
        else
          turn.then(
            () => over("in"),
            () => over("refused"),
          );
      } catch {
        over("refused");
      }
      return one;
    },
    states: () => came.map(({ state }) => state),
  };
}

describe("the gate", () => {
  it("admits requests up to the limit, then in their order", async () => {
    const { gate, enter, states } = scene(2);
    for (const who of ["a", "a", "a", "a"]) enter(who);
    expect(states()).toEqual(["in", "in", "waits", "waits"]);
    gate.release("a");
    await vi.advanceTimersByTimeAsync(1);
    expect(states()).toEqual(["in", "in", "in", "waits"]);
  });

  it("rejects immediately if the queue is full, with a message and a retry time", () => {
    const { gate, enter } = scene(2);
    for (let i = 0; i < 2 + 64; i++) enter("a");
    expect(gate.waiting).toBe(64);
    try {
      void gate.acquire("a");
      expect.unreachable();
    } catch (error) {
      const fault = getFault(error)!;
      expect(fault).toMatchObject({ kind: "overloaded", code: "gateway_overloaded" });
      expect(fault.retryAfterMs).toBeGreaterThanOrEqual(1_000);
      expect(fault.retryAfterMs).toBeLessThanOrEqual(3_000);
    }
  });

  it("rejects a request that reached its maximum wait", async () => {
    const { gate, enter, states } = scene(1, 500);
    enter("a");
    enter("a");
    await vi.advanceTimersByTimeAsync(490);
    expect(states()).toEqual(["in", "waits"]);
    await vi.advanceTimersByTimeAsync(20);
    expect(states()).toEqual(["in", "refused"]);
    expect(gate.waiting).toBe(0);
  });

  it("does not reject for time in which the process itself did not run", () => {
    let now = 0;
    const gate = new AdmissionQueue(
      { maxConcurrent: 1, maxQueueWaitMs: 500 },
      EASY,
      undefined,
      () => now,
    );
    void gate.acquire("a");
    let refused = 0;
    gate.acquire("a")!.catch(() => refused++);
    for (let i = 0; i < 20; i++) {
      // Its timer is due after some milliseconds, and fires seconds later.
      now += 3_000;
      vi.advanceTimersByTime(3);
    }
    expect(gate.waiting).toBe(1);
    for (let i = 0; i < 200; i++) {
      now += 3;
      vi.advanceTimersByTime(3);
    }
    expect(gate.waiting).toBe(0);
  });

  it("serves a standing queue from its end, and rejects within milliseconds", async () => {
    const { gate, enter } = scene(10, 100);
    for (let i = 0; i < 10; i++) enter("a");
    const late: { state: string; after: number }[] = [];
    for (let ms = 0; ms < 400; ms++) {
      // Three arrive for each that leaves.
      for (let i = 0; i < 3; i++) {
        const one = enter("a");
        if (ms > 200) late.push(one);
      }
      gate.release("a");
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(10);
    const over = late.filter(({ state }) => state === "refused");
    expect(over.length).toBeGreaterThan(300);
    expect(Math.max(...over.map(({ after }) => after))).toBeLessThanOrEqual(5);
    const served = late.filter(({ state }) => state === "in");
    expect(served.length).toBeGreaterThan(190);
    expect(Math.max(...served.map(({ after }) => after))).toBeLessThanOrEqual(5);
  });

  // Calls of equal duration start and end together: the queue is briefly empty under overload.
  it("keeps rejecting within milliseconds under overload, whatever empties the queue", async () => {
    const [most, takes] = [64, 200];
    const { gate, enter, came } = scene(most, 250);
    const ends: number[] = [];
    const refused: number[] = [];
    let [served, looked] = [0, 0];
    for (let ms = 0; ms < 6_000; ms++) {
      while (ends[0] === ms) {
        ends.shift();
        gate.release("a");
      }
      for (let i = 0; i < 1 + Number(ms % 24 !== 0); i++) enter("a");
      await vi.advanceTimersByTimeAsync(1);
      for (; came[looked] && came[looked]!.state === "in"; looked++) {
        ends.push(ms + takes);
        if (ms > 1_000) served++;
      }
      for (let i = looked; i < came.length; i++) {
        const { state, after } = came[i]!;
        if (state === "waits") continue;
        came.splice(i--, 1);
        if (state === "in") {
          ends.push(ms + takes);
          if (ms > 1_000) served++;
        } else if (ms > 1_000) refused.push(after);
      }
    }
    expect(served).toBeGreaterThan(0.95 * 5 * ((most * 1_000) / takes));
    expect(refused.length).toBeGreaterThan(1_000);
    expect(Math.max(...refused)).toBeLessThanOrEqual(5);
  });

  it("prefers a key with few requests to one with many, and does not reject it in its place", async () => {
    const { gate, enter, came } = scene(10, 100);
    for (let ms = 0; ms < 600; ms++) {
      for (let i = 0; i < 5; i++) enter("greedy");
      if (ms % 20 === 0) enter("modest");
      // The oldest of the admitted requests leaves.
      const first = came.findIndex(({ state }) => state === "in");
      if (gate.running === 10 && first >= 0) gate.release(came.splice(first, 1)[0]!.who);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(came.filter(({ who, state }) => who === "modest" && state === "refused")).toEqual([]);
    const waits = came.filter(({ who }) => who === "modest").map(({ after }) => after);
    expect(Math.max(0, ...waits)).toBeLessThan(10);
    expect(came.some(({ who, state }) => who === "greedy" && state === "refused")).toBe(true);
  });

  it("never exceeds the limit, loses no request, and retains none that has left", async () => {
    const step = fc.oneof(
      fc.record({ enter: fc.constantFrom("a", "b", "c") }),
      fc.record({ leave: fc.nat(20) }),
      fc.record({ pass: fc.integer({ min: 1, max: 300 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(step), async (most, steps) => {
        const { gate, enter, came } = scene(most, 100);
        const inside = () => came.filter(({ state }) => state === "in");
        const left = new Set<object>();
        const leave = (n: number) => {
          const there = inside().filter((one) => !left.has(one));
          const one = there[n % there.length];
          if (!one) return;
          left.add(one);
          gate.release(one.who);
        };
        for (const each of steps) {
          if ("enter" in each) enter(each.enter);
          else if ("leave" in each) leave(each.leave);
          else await vi.advanceTimersByTimeAsync(each.pass);
          await Promise.resolve();
          expect(gate.running).toBeLessThanOrEqual(Math.max(most, 1));
          expect(gate.running).toBe(inside().length - left.size);
        }
        for (let i = 0; i < came.length + 1; i++) {
          await vi.advanceTimersByTimeAsync(200);
          leave(0);
        }
        expect([gate.running, gate.waiting]).toEqual([0, 0]);
        expect(came.every(({ state }) => state !== "waits")).toBe(true);
      }),
      { numRuns: trialCount(50) },
    );
  });

  it("admits nothing while the process is late", () => {
    const gate = new AdmissionQueue(
      { maxConcurrent: 10, maxQueueWaitMs: 100 },
      { ...EASY, isOverloaded: true },
    );
    void gate.acquire("a");
    expect(() => gate.assertNotOverloaded()).toThrow("overloaded");
  });

  it("admits requests on an idle process, however late it was before", () => {
    const gate = new AdmissionQueue(
      { maxConcurrent: 10, maxQueueWaitMs: 100 },
      { ...EASY, isOverloaded: true },
    );
    gate.assertNotOverloaded();
    expect(gate.acquire("a")).toBeUndefined();
    gate.release("a");
    gate.assertNotOverloaded();
  });
});

describe("the limit", () => {
  /** This many windows with this duration of each call. */
  const pass = (
    limit: AdaptiveLimit,
    from: number,
    windows: number,
    ms: number,
    running: number,
  ) => {
    for (let i = 1; i <= windows; i++) {
      for (let n = 0; n < 20; n++) limit.recordDuration(ms);
      limit.update(from + i * 100, running, false);
    }
    return from + windows * 100;
  };

  it("does not apply while latency is constant, whatever it is", () => {
    for (const ms of [1, 40, 400]) {
      const limit = new AdaptiveLimit(1_000, 0);
      pass(limit, 0, 100, ms, 999);
      expect(limit.current).toBe(1_000);
    }
  });

  it("decreases while latency rises, never below the minimum, and recovers", () => {
    const limit = new AdaptiveLimit(1_000, 0);
    let now = pass(limit, 0, 10, 2, 900);
    now = pass(limit, now, 13, 300, 900);
    expect(limit.current).toBeLessThan(600);
    now = pass(limit, now, 50, 300, 900);
    expect(limit.current).toBe(MIN_LIMIT);
    // It limits, and calls are as fast as before: within two seconds it recovers.
    now = pass(limit, now, 20, 2, 1_000);
    expect(limit.current).toBe(1_000);
  });

  it("does not change for a burst that ends within a second, however slow it was", () => {
    const limit = new AdaptiveLimit(1_000, 0);
    let now = pass(limit, 0, 10, 2, 100);
    for (let i = 0; i < 5; i++) {
      now = pass(limit, now, 9, 900, 900);
      expect(limit.current).toBe(1_000);
      now = pass(limit, now, 1, 2, 100);
    }
  });

  it("decreases if the process is late without measured calls, and a number set by the operator stays", () => {
    const limit = new AdaptiveLimit(1_000, 0);
    limit.update(100, 500, true);
    expect(limit.current).toBe(400);
    limit.setMax(8);
    expect(limit.current).toBe(8);
    limit.update(200, 8, true);
    expect(limit.current).toBe(8);
  });
});
