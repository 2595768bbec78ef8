// Stats of several processes as one: whichever responds, is late, or ends, counters never decrease.
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  StatsCollector,
  type PrimaryStatsSource,
  type StatsSource,
} from "../../../src/runtime/health/stats-collector.ts";
import { DurationRecorder } from "../../../src/runtime/services/duration-histogram.ts";
import { EventLoopDelay } from "../../../src/runtime/health/pause-stats.ts";
import { type LocalStats, sumStats } from "../../../src/runtime/health/process-stats.ts";
import { until } from "../../kit/wait.ts";

const PROCESS: LocalStats["process"] = {
  pid: 1,
  startedAt: 1,
  cpu: { user: 1, system: 1 },
  memory: { rss: 1, heapUsed: 1, heapTotal: 1, external: 1 },
  loopDelayMs: { mean: 0, p99: 0, max: 0 },
  gc: {
    minor: { count: 0, seconds: 0 },
    major: { count: 0, seconds: 0 },
    incremental: { count: 0, seconds: 0 },
    weakcb: { count: 0, seconds: 0 },
  },
};
const own = (more: Partial<LocalStats> = {}): LocalStats => ({
  process: PROCESS,
  inFlight: 0,
  inFlightByFrontend: {},
  webSocketsByFrontend: {},
  cooldowns: [],
  unreachable: [],
  pools: [],
  queuedCommands: 0,
  loopDelayMs: { mean: 0, p99: 0, max: 0 },
  memory: { rss: 1, heapUsed: 1, external: 1 },
  rejections: {},
  droppedRecords: {},
  ...more,
});

it("sum what can be summed, and take the worst of the rest", () => {
  const more = { state: "retry_after", reason: "rate_limited" } as const;
  const rest = { provider: "p", credential: "c", model: "m", ...more };
  const pool = { origin: "https://a", connected: 2, free: 1, running: 1, queued: 3 };
  expect(
    sumStats(
      [
        own({
          inFlight: 2,
          inFlightByFrontend: { messages: 1, models: 0 },
          webSocketsByFrontend: { responses: 2 },
          cooldowns: [{ ...rest, until: 5 }],
          // The primary sends no requests through middleware while there are workers.
          unreachable: [{ plugin: "middleware.c", since: 1, requests: "rejected", processes: 1 }],
          pools: [pool],
          rejections: { tls: 1 },
        }),
        own({
          inFlight: 3,
          inFlightByFrontend: { messages: 2 },
          webSocketsByFrontend: { responses: 1 },
          cooldowns: [
            { ...rest, until: 9 },
            { provider: "p", credential: "c", until: 1, ...more },
          ],
          pools: [pool, { ...pool, origin: "https://b" }],
          queuedCommands: 4,
          loopDelayMs: { mean: 1, p99: 20, max: 30 },
        }),
      ],
      { rejections: { tls: 2, unknown_path: 1 }, droppedRecords: { "observers.a": 7 } },
    ),
  ).toEqual({
    perProcess: [PROCESS, PROCESS],
    inFlight: 5,
    inFlightByFrontend: { messages: 3, models: 0 },
    webSocketsByFrontend: { responses: 3 },
    cooldowns: [
      { ...rest, until: 9 },
      { provider: "p", credential: "c", until: 1, ...more },
    ],
    unreachable: [],
    pools: [
      { origin: "https://a", connected: 4, free: 2, running: 2, queued: 6 },
      { ...pool, origin: "https://b" },
    ],
    queuedCommands: 4,
    loopDelayMs: { mean: 1, p99: 20, max: 30 },
    memory: { rss: 2, heapUsed: 2, external: 2 },
    rejections: { tls: 3, unknown_path: 1 },
    droppedRecords: { "observers.a": 7 },
  });
});

it("report an unreachable plugin since the first process lost it, and count the processes", () => {
  const gone = { plugin: "middleware.a", requests: "rejected", processes: 1 } as const;
  const other = { plugin: "middleware.b", since: 4, requests: "continued", processes: 1 } as const;
  const alone = [{ ...gone, since: 9 }];
  expect(sumStats([own({ unreachable: alone })]).unreachable).toEqual(alone);
  const workers = [
    own({ unreachable: [{ ...gone, since: 9 }, other] }),
    own({ unreachable: [{ ...gone, since: 3 }] }),
    own(),
  ];
  expect(sumStats([own(), ...workers]).unreachable).toEqual([
    { ...gone, since: 3, processes: 2 },
    other,
  ]);
});

it("limit the number of cooldowns, and keep the longest", () => {
  const resting = Array.from({ length: 5_000 }, (_, until) => ({
    provider: "p",
    credential: "c",
    model: `m${until}`,
    until,
    state: "open" as const,
    reason: "overloaded" as const,
  }));
  const sum = sumStats([own({ cooldowns: resting })]);
  expect([sum.cooldowns.length, sum.cooldowns[0]!.until]).toEqual([1_000, 4_999]);
});

const PRIMARY: PrimaryStatsSource = {
  read: () => ({ version: "0", state: "ready", generation: { number: 1, at: 1 }, modelLists: [] }),
  readCommits: () => ({ count: 0, sumMs: 0, buckets: [] }),
  ledgerFailure: () => undefined,
  readCertificates: async () => [],
  readJobs: async () => undefined,
  readFleet: async () => undefined,
  readStoreSize: async () => undefined,
};

/** A process with counters that may respond or not, and may end. */
class Child implements StatsSource {
  count = 0;
  silent = false;
  asked = 0;
  async readStats() {
    this.asked++;
    const told = own({ rejections: { tls: this.count } });
    await Promise.resolve();
    return this.silent ? undefined : told;
  }
}

it("have counters that never decrease and count nothing twice, whichever process is late, ends, or starts", async () => {
  const step = fc.record({
    do: fc.constantFrom("count", "silence", "speak", "end", "begin", "read"),
    which: fc.nat(3),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      let children = [new Child(), new Child()];
      const all = new StatsCollector({ read: own }, PRIMARY, () => children);
      let before = 0;
      let truth = 0;
      for (const { do: what, which } of steps) {
        const child = children[which % (children.length || 1)];
        if (what === "begin") children = [...children, new Child()];
        if (what === "read") {
          const { rejections, processes } = await all.read();
          const now = rejections["tls"] ?? 0;
          expect(now).toBeGreaterThanOrEqual(before);
          expect(now).toBeLessThanOrEqual(truth);
          if (children.every(({ silent }) => !silent))
            expect(processes.responded).toBe(processes.expected);
          before = now;
        }
        if (!child) continue;
        if (what === "count") [child.count, truth] = [child.count + 1, truth + 1];
        if (what === "silence") child.silent = true;
        if (what === "speak") child.silent = false;
        if (what === "end") {
          children = children.filter((one) => one !== child);
          all.sourceEnded(child);
        }
      }
    }),
  );
});

it("query each process once for concurrent callers", async () => {
  const child = new Child();
  const all = new StatsCollector({ read: own }, PRIMARY, () => [child]);
  await Promise.all(Array.from({ length: 50 }, () => all.read()));
  expect(child.asked).toBe(1);
  await all.read();
  expect(child.asked).toBe(2);
});

it("report a blocked event loop in the next reading, and the first one reports none", async () => {
  const delay = new EventLoopDelay();
  expect(delay.read()).toEqual({ mean: 0, p99: 0, max: 0 });
  const stand = () => {
    for (let end = process.cpuUsage().user + 60_000; process.cpuUsage().user < end;);
  };
  await until(() => {
    stand();
    return delay.read().max >= 20;
  });
});

it("have cumulative buckets for durations", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1e6, noNaN: true })), (all) => {
      const durations = new DurationRecorder();
      for (const ms of all) durations.record(ms);
      const { count, sumMs, buckets } = durations.read();
      expect(count).toBe(all.length);
      expect(sumMs).toBeCloseTo(
        all.reduce((sum, ms) => sum + ms, 0),
        3,
      );
      for (const { ms, count: within } of buckets)
        expect(within).toBe(all.filter((took) => took <= ms).length);
    }),
  );
});
