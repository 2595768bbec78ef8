// Completed requests: the newest up to a limit, in order, however slowly they are read.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import {
  RequestRing,
  type FinishedRequest,
} from "../../../../src/runtime/requests/request-ring.ts";
import { ownCpuMs } from "../../../kit/process/cpu-time.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const record = (n: number, more: Partial<RequestRecord> = {}): FinishedRequest =>
  ({
    at: n,
    id: `r${n}`,
    frontend: "f",
    model: "m",
    privacy: "off",
    labels: { team: "web" },
    trace: { traceId: "1".repeat(32), spanId: "2".repeat(16) },
    ...more,
  }) as RequestRecord;
const every = () => true;

it("keeps the newest, returns them in order, and reports what a reader missed", () => {
  const step = fc.oneof(
    fc.record({ add: fc.nat(12) }),
    fc.record({ limit: fc.nat(9) }),
    fc.record({ read: fc.integer({ min: 1, max: 6 }) }),
  );
  fc.assert(
    fc.property(fc.nat(9), fc.array(step, { maxLength: 30 }), (most, steps) => {
      const ring = new RequestRing(most, 0);
      let [kept, count, limit, place]: [FinishedRequest[], number, number, number] = [
        [],
        0,
        most,
        0,
      ];
      for (const each of steps) {
        if ("add" in each) {
          const batch = Array.from({ length: each.add }, (_, i) => record(count + i));
          ring.add(batch);
          if (limit === 0) continue;
          count += each.add;
          kept = [...kept, ...batch].slice(-limit);
        } else if ("limit" in each) {
          ring.setCapacity(each.limit);
          limit = each.limit;
          kept = limit === 0 ? [] : kept.slice(-limit);
        } else {
          const { items, next, missedCount } = ring.read(place, every, each.read);
          const first = count - kept.length;
          expect(missedCount).toBe(Math.max(0, first - place));
          const from = Math.max(place, first);
          expect(items.map(({ seq }) => seq)).toEqual(
            kept
              .slice(from - first)
              .slice(0, each.read)
              .map((_, i) => from + i),
          );
          expect(next).toBe(from + items.length);
          place = next;
        }
        expect([ring.size, ring.count]).toEqual([kept.length, count]);
        expect(ring.find(every, 100)).toEqual(kept.toReversed());
        const since = count === kept.length ? 0 : (kept[0]?.at ?? expect.any(Number));
        expect(ring.since).toEqual(since);
      }
    }),
  );
});

it("a position of an earlier process is unknown: its reader starts with the oldest", () => {
  const ring = new RequestRing(4, 0);
  ring.add([record(0), record(1)]);
  expect(ring.read(5_000, every, 10)).toMatchObject({ next: 2, missedCount: 0 });
});

it("100,000 requests do not enlarge it, and cost almost no time", () => {
  const ring = new RequestRing(1_000);
  const batch = Array.from({ length: 250 }, (_, n) => record(n, { model: "x".repeat(100_000) }));
  const before = ownCpuMs();
  for (let n = 0; n < 400; n++) ring.add(batch);
  const ms = ownCpuMs() - before;
  expect([ring.count, ring.size]).toEqual([100_000, 1_000]);
  expect(ms).toBeLessThan(5_000);
  const all = ring.find(every, 2_000);
  expect(all).toHaveLength(1_000);
  for (const over of all) expect((over as RequestRecord).model).toHaveLength(256);
});

it("keeps no label of a private request, and does not change its input", () => {
  const ring = new RequestRing(4);
  const given = record(1, { privacy: "required" });
  ring.add([given, record(2)]);
  const kept = ring.find(every, 4).map((over) => (over as RequestRecord).labels);
  expect(kept).toEqual([{ team: "web" }, {}]);
  expect(given).toMatchObject({ labels: { team: "web" } });
});

it("keeps no text of an erased person", () => {
  const ring = new RequestRing(4);
  ring.add(Array.from({ length: 6 }, (_, n) => record(n, { clientRequestId: "ann-7" })));
  ring.redactTexts();
  expect(ring.find(every, 9).map(({ id }) => id)).toEqual(["r5", "r4", "r3", "r2"]);
  expect(JSON.stringify(ring.find(every, 9))).not.toMatch(/web|ann/);
});

it("notifies a waiting reader of the next request", async () => {
  const ring = new RequestRing(4);
  const heard = ring.whenAdded();
  ring.add([
    record(1, {
      trace: { traceId: "1".repeat(32), spanId: "2".repeat(16), state: "vendor=a-client-s-own" },
    }),
  ]);
  await heard;
});

it("does not keep a client's trace state", () => {
  const ring = new RequestRing(2);
  ring.add([
    record(1, {
      trace: { traceId: "1".repeat(32), spanId: "2".repeat(16), state: "vendor=a-client-s-own" },
    }),
  ]);
  const [kept] = ring.find(every, 1) as RequestRecord[];
  expect(kept!.trace.traceId).toBe("1".repeat(32));
  expect(kept!.trace.state).toBeUndefined();
});

it("an account's view equals a ring with its own requests only", () => {
  const PATHS = ["acme", "acme/lab", "acme/lab/web", "sales", undefined] as const;
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.array(fc.constantFrom(...PATHS), { maxLength: 6 }) },
    { weight: 1, arbitrary: fc.record({ read: fc.integer({ min: 1, max: 4 }) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const [ring, alone] = [new RequestRing(1_000, 5), new RequestRing(1_000, 5)];
      let [n, place] = [10, 0];
      for (const each of steps) {
        if (Array.isArray(each)) {
          const batch = each.map((account) => record(n++, { account }));
          ring.add(batch);
          alone.add(batch.filter((_, i) => each[i]?.includes("lab")));
        } else {
          const page = ring.within("lab").read(place, every, each.read);
          expect(page).toEqual(alone.read(place, every, each.read));
          place = page.next;
        }
        const view = ring.within("lab");
        expect([view.count, view.size, view.since]).toEqual([alone.count, alone.size, alone.since]);
      }
      expect(ring.within(undefined)).toBe(ring);
    }),
    { numRuns: trialCount(100) },
  );
});

it("an account's view counts its own evicted requests, whatever evicted them", () => {
  const path = fc.constantFrom("acme/lab", "sales");
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.array(path, { maxLength: 40 }),
      (most, paths) => {
        const ring = new RequestRing(most, 0);
        for (const [i, account] of paths.entries()) ring.add([record(i + 1, { account })]);
        ring.setCapacity(Math.max(1, most - 2));
        const kept = paths.slice(-Math.max(1, most - 2)).filter((of) => of === "acme/lab").length;
        const came = paths.filter((of) => of === "acme/lab").length;
        const view = ring.within("lab");
        expect([view.count, view.size]).toEqual([came, kept]);
        expect(view.read(0, every, 100)).toMatchObject({ next: came, missedCount: came - kept });
        // Every own request since then is kept.
        const own = paths.flatMap((of, i) => (of === "acme/lab" ? [i + 1] : []));
        expect(own.filter((at) => at >= view.since)).toHaveLength(kept);
      },
    ),
    { numRuns: trialCount(100) },
  );
});
