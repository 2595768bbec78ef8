// The estimated speed of a target: from measurements, current silence, and old values.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Latency } from "../../../src/pipeline/targets/latency.ts";
import { trialCount } from "../../kit/law-effort.ts";

/**
 * Targets under load: each request is sent to the one with the fastest estimate, and its content
 * arrives after `ms`.
 */
function run(of: {
  readonly ms: readonly ((now: number) => number)[];
  readonly everyMs: number;
  readonly untilMs: number;
}) {
  const all = of.ms.map(() => new Latency());
  const due: { at: number; began: number; of: number }[] = [];
  const asked: { at: number; of: number }[] = [];
  const answer = (now: number) => {
    for (let one = due[0]; one && one.at <= now; one = due[0]) {
      due.shift();
      all[one.of]!.recordFirstToken(one.at, one.at - one.began);
    }
  };
  for (let now = 0; now < of.untilMs; now += of.everyMs) {
    answer(now);
    const first = all.reduce(
      (best, one, i) => (one.estimateMs(now) < all[best]!.estimateMs(now) ? i : best),
      0,
    );
    all.forEach((one, i) => (i === first ? one.recordStart(now) : one.recordSkip()));
    asked.push({ at: now, of: first });
    due.push({ at: now + of.ms[first]!(now), began: now, of: first });
    due.sort((a, b) => a.at - b.at);
  }
  const share = (target: number, from: number, to: number) => {
    const some = asked.filter(({ at }) => at >= from && at < to);
    return some.filter((one) => one.of === target).length / some.length;
  };
  return { share };
}

describe("latency", () => {
  it("a target that becomes slow is abandoned soon, and called again when it recovers", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 200 }),
        fc.integer({ min: 3, max: 30 }),
        fc.integer({ min: 10, max: 100 }),
        (ms, times, everyMs) => {
          const ill = (now: number) => (now >= 30_000 && now < 90_000 ? ms * times : ms);
          const { share } = run({ ms: [ill, () => ms * 1.5], everyMs, untilMs: 240_000 });
          expect(share(0, 5_000, 30_000)).toBeGreaterThan(0.8);
          expect(share(0, 33_000, 90_000)).toBeLessThan(0.1);
          expect(share(0, 200_000, 240_000)).toBeGreaterThan(0.8);
        },
      ),
      { numRuns: trialCount(25) },
    );
  });

  it("a target without measurements is tried by one request, and others do not wait for it", () => {
    const { share } = run({ ms: [() => 100, () => 60_000], everyMs: 10, untilMs: 30_000 });
    expect(share(1, 100, 30_000)).toBe(0);
    const one = new Latency();
    expect(one.estimateMs(0)).toBe(0);
    one.recordStart(0);
    expect(one.estimateMs(1)).toBeGreaterThan(1e6);
  });

  it("few requests are sent as probes: at most one in twenty-five for each factor of two in slowness", () => {
    const { share } = run({ ms: [() => 100, () => 200], everyMs: 60_000, untilMs: 200 * 60_000 });
    expect(share(1, 5 * 60_000, 200 * 60_000)).toBeLessThanOrEqual(1 / 25);
    expect(share(1, 5 * 60_000, 200 * 60_000)).toBeGreaterThan(0);
  });

  it("failures do not count: a fast failure is not fast, and a hanging target is slow", () => {
    const one = new Latency();
    one.recordStart(0);
    one.recordEndWithoutContent(1, 1);
    expect([one.averageMs, one.estimateMs(2)]).toEqual([undefined, 0]);
    one.recordStart(10);
    one.recordFirstToken(110, 100);
    one.recordStart(200);
    one.recordEndWithoutContent(201, 1);
    expect(one.averageMs).toBe(100);
    one.recordStart(300);
    expect(one.estimateMs(5_300)).toBe(5_000);
    one.recordEndWithoutContent(5_300, 5_000);
    expect(one.averageMs).toBeGreaterThan(500);
  });

  it("never counts calls that do not exist, whatever happens", () => {
    const step = fc.tuple(fc.constantFrom("begin", "answer", "end", "pass"), fc.nat(20_000));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const one = new Latency();
        let [now, open] = [0, 0];
        for (const [what, passed] of steps) {
          now += passed;
          if (what === "begin") {
            one.recordStart(now);
            open++;
          } else if (what === "pass") one.recordSkip();
          else if (open > 0) {
            open--;
            if (what === "answer") one.recordFirstToken(now, passed);
            else one.recordEndWithoutContent(now, passed);
          }
          expect(one.estimateMs(now)).toBeGreaterThanOrEqual(0);
          if (one.averageMs !== undefined && open === 0)
            expect(one.estimateMs(now)).toBeLessThanOrEqual(one.averageMs);
        }
      }),
    );
  });
});
