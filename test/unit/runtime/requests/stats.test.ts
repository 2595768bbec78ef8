// Counts and times: sums equal the requests, also across restarts, with an upper limit.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import {
  StatsCell,
  CellReader,
  CellWriter,
  DURATION_CLASSES,
  classOf,
  quantile,
} from "../../../../src/runtime/requests/stats-cell.ts";
import { TimeSlots } from "../../../../src/runtime/requests/time-slots.ts";
import { RequestStats } from "../../../../src/runtime/requests/request-stats.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const MINUTE = 60_000;
const START = 1_795_000_020_000;

type Call = RequestRecord["calls"][number];
const call = (more: Partial<Call> = {}): Call =>
  ({
    n: 1,
    provider: "demo",
    model: "echo",
    state: "exact",
    usage: { input: 3, output: 5 },
    costNano: 700n,
    startMs: 0,
    ms: { headers: 20, firstToken: 40, total: 100 },
    ...more,
  }) as Call;
const record = (more: Partial<RequestRecord> = {}): RequestRecord =>
  ({
    at: START,
    id: "r",
    frontend: "messages",
    key: "k1",
    status: 200,
    outcome: "ok",
    cached: false,
    privacy: "off",
    ms: 100,
    firstTokenMs: 40,
    overheadMs: 0.4,
    calls: [call()],
    ...more,
  }) as RequestRecord;

it("a quantile is off by at most a tenth, from a millisecond to an hour", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1, max: 3_599_000, noNaN: true }), { minLength: 1, maxLength: 80 }),
      fc.constantFrom(0.5, 0.95, 0.99),
      (times, share) => {
        const counts = new Uint32Array(DURATION_CLASSES);
        for (const ms of times) counts[classOf(ms)]!++;
        const exact = times.toSorted((a, b) => a - b)[
          Math.max(0, Math.ceil(times.length * share) - 1)
        ]!;
        const said = quantile(counts, share)!;
        expect(said).toBeGreaterThan(exact * 0.9 - 0.1);
        expect(said).toBeLessThan(exact * 1.1 + 0.1);
      },
    ),
  );
  expect(quantile(new Uint32Array(DURATION_CLASSES), 0.5)).toBeUndefined();
});

it("numbers are decoded unchanged, including negative ones and more than 32 bits", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -(2 ** 40), max: 2 ** 40 })), {
        maxLength: 40,
      }),
      fc.string({ unit: "grapheme" }),
      (values, text) => {
        const writer = new CellWriter();
        writer.writeText(text);
        writer.writeSparse(values);
        const reader = new CellReader(writer.toBuffer());
        const read = new Float64Array(values.length);
        expect(reader.readText()).toBe(text);
        reader.readSparse(read);
        expect([...read]).toEqual(values);
        expect(reader.isAtEnd).toBe(true);
      },
    ),
  );
});

describe("a query", () => {
  it("returns the sum by each dimension, now, by minute, and by hour, across a restart", () => {
    const one = fc.record({
      wait: fc.integer({ min: 0, max: 200_000 }),
      key: fc.constantFrom("k1", "k2", undefined),
      account: fc.constantFrom("acme/web", "acme/web/team", "web2", undefined),
      frontend: fc.constantFrom("messages", "images"),
      model: fc.constantFrom("echo", "lorem"),
      costNano: fc.option(fc.bigInt({ min: 0n, max: 10n ** 12n })),
      outcome: fc.constantFrom("ok", "client_error", "refused", "canceled", "error"),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 25 }), fc.nat(25), (given, restartAt) => {
        let now = START;
        let stats = new RequestStats(() => now);
        given.forEach(({ wait, model, costNano, ...more }, i) => {
          now += wait;
          if (i === restartAt) {
            const bytes = stats.serialize();
            stats = new RequestStats(() => now);
            stats.restore(bytes);
          }
          stats.add([record({ ...more, at: now, calls: [call({ model, costNano })] })]);
        });
        expect(stats.countedSince).toBe(START);
        for (const step of ["minute", "hour"] as const)
          for (const by of ["all", "frontend", "model", "key"] as const) {
            const { rows } = stats.readSeries({ from: 0, to: now + 1, step, by, most: 100 });
            const meant = given.filter(({ key }) => by !== "key" || key !== undefined);
            const sum = (of: (row: (typeof rows)[number]) => number) =>
              rows.reduce((all, row) => all + of(row), 0);
            expect(sum(({ requests }) => requests)).toBe(meant.length);
            expect(rows.reduce((all, { costNano }) => all + costNano, 0n)).toBe(
              meant.reduce((all, { costNano }) => all + (costNano ?? 0n), 0n),
            );
            expect(sum(({ unpriced }) => unpriced)).toBe(
              meant.filter(({ costNano }) => costNano === null).length,
            );
          }
        for (const [account, meant] of [
          ["web", (path = "") => /^acme[/]web/.test(path)],
          ["acme/web", (path = "") => /^acme[/]web/.test(path)],
          ["team", (path = "") => path.endsWith("/team")],
          ["nowhere", () => false],
        ] as const)
          for (const by of ["all", "account"] as const) {
            const asked = { from: 0, to: now + 1, step: "hour", by, most: 100, account } as const;
            const { rows, totals } = stats.readSeries(asked);
            const count = given.filter((each) => meant(each.account)).length;
            for (const list of [rows, totals])
              expect(list.reduce((all, { requests }) => all + requests, 0)).toBe(count);
            expect(totals.every(({ name }) => (by === "all" ? name === "" : meant(name)))).toBe(
              true,
            );
          }
        const names = stats
          .readSeries({ from: 0, to: now + 1, step: "hour", by: "model", most: 100 })
          .rows.map(({ name }) => name);
        expect(new Set(names)).toEqual(new Set(given.map(({ model }) => `demo/${model}`)));
      }),
      { numRuns: trialCount(60) },
    );
  });

  it("for the last minute returns its completed requests, the most expensive first", () => {
    let now = START;
    const stats = new RequestStats(() => now);
    stats.add([record({ key: "old" })]);
    now += 30 * MINUTE;
    stats.add([
      record({ key: "cheap" }),
      record({
        key: "dear",
        calls: [call({ costNano: 9_000n }), call()],
        outcome: "upstream_error",
      }),
      record({ key: undefined, outcome: "refused", ms: 1, firstTokenMs: undefined, calls: [] }),
    ]);
    expect(stats.recentRows("key", MINUTE)).toMatchObject([
      { name: "dear", requests: 1, calls: 2, failed: 1, costNano: 9_700n, input: 6, output: 10 },
      { name: "cheap", requests: 1, failed: 0, costNano: 700n },
    ]);
    expect(stats.recentRows("all", MINUTE)).toMatchObject([{ requests: 3, refused: 1, failed: 1 }]);
    expect(stats.recentRows("all", 3_600_000)).toMatchObject([{ requests: 4 }]);
    expect(stats.recentRows("all", MINUTE)[0]!.firstTokenMs!.p50).toBeCloseTo(40, -1);
    expect(stats.recentRows("all", MINUTE)[0]!.overheadMs!.p50).toBeCloseTo(0.4, 1);
  });

  it("returns pages of a limited length", () => {
    let now = START;
    const stats = new RequestStats(() => now);
    for (let n = 0; n < 2_000; n++) {
      stats.add([record()]);
      now += MINUTE;
    }
    const asked = { from: 0, to: now, step: "minute", by: "all", most: 1 } as const;
    const first = stats.readSeries(asked);
    const second = stats.readSeries({ ...asked, from: first.next! });
    expect([first.rows.length, second.rows.length, second.next]).toEqual([1_500, 500, undefined]);
  });
});

describe("limits apply", () => {
  it("to series: the smallest are merged, and no sum changes", () => {
    let now = START;
    const stats = new RequestStats(() => now);
    stats.add(
      Array.from({ length: 100_000 }, (_, n) => record({ key: n % 3 === 0 ? "big" : `k${n}` })),
    );
    now += MINUTE;
    stats.add([record({ key: "later" })]);
    const { rows } = stats.readSeries({
      from: 0,
      to: now + 1,
      step: "minute",
      by: "key",
      most: 100,
    });
    expect(rows.length).toBeLessThanOrEqual(101);
    expect(rows.find(({ name }) => name === "big")!.requests).toBe(33_334);
    expect(rows.reduce((all, { requests }) => all + requests, 0)).toBe(100_001);
    // A file of stored stats has a few bytes for each of them.
    expect(stats.serialize().length).toBeLessThan(200_000);
  });

  it("to time spans and bytes: the oldest are removed first", () => {
    for (const [most, bytes, left] of [
      [10, 1 << 20, 9],
      [1_000, 200, 6],
    ] as const) {
      const slots = new TimeSlots({ slotMs: MINUTE, maxSlots: most, maxBytes: bytes }, 0);
      for (let n = 0; n < 100; n++) {
        slots.advanceTo(n * MINUTE);
        slots.cellOf("key:k").increment("requests");
      }
      let read = 0;
      slots.read(
        0,
        Infinity,
        () => true,
        () => read++,
      );
      // The current one is in addition to them.
      expect(read).toBeGreaterThanOrEqual(left);
      expect(read).toBeLessThanOrEqual(most);
      expect(Buffer.concat(slots.serialize()).length).toBeLessThan(Math.min(bytes * 2, 2_000));
      expect(slots.oldestStart).toBe((100 - read) * MINUTE);
    }
  });

  it("to memory: hourly data retains nothing else, of this process or an earlier one", () => {
    const bounds = { slotMs: MINUTE, maxSlots: 1_000, maxBytes: 1 << 20 };
    const slots = new TimeSlots(bounds, 0);
    for (let n = 0; n < 100; n++) {
      slots.advanceTo(n * MINUTE);
      slots.cellOf("key:k").increment("requests");
      // Other code uses Node's buffer pool in the meantime.
      for (let i = 0; i < 30; i++) Buffer.from("x".repeat(1_000));
    }
    const again = new TimeSlots(bounds, 0);
    again.restore(Buffer.concat(slots.serialize()), 100 * MINUTE);
    for (const each of [slots, again]) {
      const kept = each.serialize();
      const behind = new Set(kept.map(({ buffer }) => buffer));
      const all = [...behind].reduce((sum, { byteLength }) => sum + byteLength, 0);
      expect(all).toBe(Buffer.concat(kept).length);
    }
  });

  it("an invalid file is rejected, wherever it is truncated or changed", () => {
    const stats = new RequestStats(() => START);
    stats.add([record()]);
    const bytes = stats.serialize();
    for (let cut = 0; cut < bytes.length; cut++)
      expect(() => new RequestStats(() => START).restore(bytes.subarray(0, cut))).toThrow(
        RangeError,
      );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        try {
          new TimeSlots({ slotMs: MINUTE, maxSlots: 10, maxBytes: 1_000 }, 0).restore(noise, START);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});

it("cells are summed", () => {
  const [a, b] = [new StatsCell(), new StatsCell()];
  a.increment("requests", 2);
  b.increment("requests", 3);
  b.total[4] = 1;
  a.add(b);
  expect([a.get("requests"), a.total[4], b.get("requests")]).toEqual([5, 1, 3]);
});

it("counts of a provider equal those of its models together", () => {
  const part = fc.record({
    provider: fc.constantFrom("one", "one-more", "two"),
    model: fc.constantFrom("a", "b/c", "one"),
  });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (calls) => {
      const stats = new RequestStats(() => START);
      stats.add(calls.map((each) => record({ calls: [call(each)] })));
      const of = { from: 0, to: START + MINUTE, step: "minute", most: 100 } as const;
      const counts = (rows: readonly { name: string; requests: number }[]) =>
        Object.fromEntries(rows.map(({ name, requests }) => [name, requests]));
      const each = Map.groupBy(calls, ({ provider }) => provider);
      const wanted = Object.fromEntries([...each].map(([name, its]) => [name, its.length]));
      expect(counts(stats.readSeries({ ...of, by: "provider" }).totals)).toEqual(wanted);
      expect(counts(stats.recentRows("provider", MINUTE))).toEqual(wanted);
      for (const provider of ["one", "one-more", "two"]) {
        const own = stats.readSeries({ ...of, by: "all", provider }).totals;
        expect(own.reduce((sum, { requests }) => sum + requests, 0)).toBe(wanted[provider] ?? 0);
        const models = stats.readSeries({ ...of, by: "model", provider }).totals;
        expect(models.every(({ name }) => name.startsWith(`${provider}/`))).toBe(true);
      }
    }),
  );
});
