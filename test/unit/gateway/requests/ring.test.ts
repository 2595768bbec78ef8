// Requests that are over: the newest so many, in their order, however slowly they are read.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import { RequestRing, type Over } from "../../../../src/gateway/requests/ring.ts";
import { worked } from "../../../kit/processor.ts";

const record = (n: number, more: Partial<RequestRecord> = {}): Over =>
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

it("keeps the newest, hands them out in order, and says what a reader has missed", () => {
  const step = fc.oneof(
    fc.record({ add: fc.nat(12) }),
    fc.record({ limit: fc.nat(9) }),
    fc.record({ read: fc.integer({ min: 1, max: 6 }) }),
  );
  fc.assert(
    fc.property(fc.nat(9), fc.array(step, { maxLength: 30 }), (most, steps) => {
      const ring = new RequestRing(most, 0);
      let [kept, count, limit, place]: [Over[], number, number, number] = [[], 0, most, 0];
      for (const each of steps) {
        if ("add" in each) {
          const batch = Array.from({ length: each.add }, (_, i) => record(count + i));
          ring.add(batch);
          if (limit === 0) continue;
          count += each.add;
          kept = [...kept, ...batch].slice(-limit);
        } else if ("limit" in each) {
          ring.limit(each.limit);
          limit = each.limit;
          kept = limit === 0 ? [] : kept.slice(-limit);
        } else {
          const { items, next, missed } = ring.read(place, every, each.read);
          const first = count - kept.length;
          expect(missed).toBe(Math.max(0, first - place));
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

it("a place of an earlier process is none here: its reader begins with the oldest", () => {
  const ring = new RequestRing(4, 0);
  ring.add([record(0), record(1)]);
  expect(ring.read(5_000, every, 10)).toMatchObject({ next: 2, missed: 0 });
});

it("100,000 requests leave it as large as it was, and cost next to nothing", () => {
  const ring = new RequestRing(1_000);
  const batch = Array.from({ length: 250 }, (_, n) => record(n, { model: "x".repeat(100_000) }));
  const before = worked();
  for (let n = 0; n < 400; n++) ring.add(batch);
  const ms = worked() - before;
  expect([ring.count, ring.size]).toEqual([100_000, 1_000]);
  expect(ms).toBeLessThan(5_000);
  const all = ring.find(every, 2_000);
  expect(all).toHaveLength(1_000);
  for (const over of all) expect((over as RequestRecord).model).toHaveLength(256);
});

it("of a private request no label is kept, and what is handed in is not changed", () => {
  const ring = new RequestRing(4);
  const given = record(1, { privacy: "required" });
  ring.add([given, record(2)]);
  const kept = ring.find(every, 4).map((over) => (over as RequestRecord).labels);
  expect(kept).toEqual([{ team: "web" }, {}]);
  expect(given).toMatchObject({ labels: { team: "web" } });
});

it("a person who is erased leaves no words in it", () => {
  const ring = new RequestRing(4);
  ring.add(Array.from({ length: 6 }, (_, n) => record(n, { clientRequestId: "ann-7" })));
  ring.forgetWords();
  expect(ring.find(every, 9).map(({ id }) => id)).toEqual(["r5", "r4", "r3", "r2"]);
  expect(JSON.stringify(ring.find(every, 9))).not.toMatch(/web|ann/);
});

it("a reader that waits hears of the next", async () => {
  const ring = new RequestRing(4);
  const heard = ring.grown();
  ring.add([
    record(1, {
      trace: { traceId: "1".repeat(32), spanId: "2".repeat(16), state: "vendor=a-client-s-own" },
    }),
  ]);
  await heard;
});

it("what a client's own tracing wrote is not kept", () => {
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
