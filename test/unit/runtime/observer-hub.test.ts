// Data for observers: everything in order, in batches of limited size. Nothing waits for an
// observer, and observers do not wait for each other.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GatewayEvent, Observer, RequestRecord } from "tollgate/plugin";
import { ObserverHub } from "../../../src/runtime/observers/observer-hub.ts";
import type { MountedObserver } from "../../../src/runtime/observers/observer-subscriber.ts";
import { createRemoteSink } from "../../../src/runtime/observers/remote-sink.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { trialCount } from "../../kit/law-effort.ts";

const logs: { level: string; message: string; fields: Record<string, unknown> }[] = [];
const say = (level: string) => (fields: Record<string, unknown>, message: string) =>
  void logs.push({ level, message, fields });
const log = { warn: say("warn"), error: say("error") } as never;

const TRACE = {
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: "00f067aa0ba902b7",
  state: "a=b",
};
const record = (id: number, more: Partial<RequestRecord> = {}): RequestRecord =>
  ({
    id: String(id),
    privacy: "off",
    labels: { team: "web" },
    trace: TRACE,
    ...more,
  }) as RequestRecord;
const mounted = (observer: Observer, sends: MountedObserver["sends"] = "nowhere") => ({
  id: "observers.x",
  observer,
  sends,
});

describe("an observer", () => {
  it("receives every record once, in order, one batch at a time, however slow it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ many: fc.nat(700), pause: fc.boolean() }), { maxLength: 6 }),
        fc.nat(3),
        async (bursts, slowness) => {
          const got: string[] = [];
          let inside = 0;
          const one = mounted({
            async onRequests(batch) {
              expect(++inside).toBe(1);
              expect(batch.length).toBeGreaterThan(0);
              expect(batch.length).toBeLessThanOrEqual(256);
              if (slowness > 0) await turnEventLoop(slowness);
              got.push(...batch.map(({ id }) => id));
              inside--;
            },
          });
          const audience = new ObserverHub(log);
          audience.attach([one]);
          let n = 0;
          for (const { many, pause } of bursts) {
            for (let i = 0; i < many; i++) audience.reportRequest(record(n++));
            if (pause) await turnEventLoop(1);
          }
          await audience.detach([one]);
          expect(got).toEqual(Array.from({ length: n }, (_, i) => String(i)));
        },
      ),
      { numRuns: trialCount(40) },
    );
  });

  it("that hangs loses records above its limit, is told how many, and delays nothing", async () => {
    logs.length = 0;
    const gate = Promise.withResolvers<void>();
    const notices: GatewayEvent[] = [];
    let got = 0;
    let quick = 0;
    const slow = mounted({
      async onRequests(batch) {
        await gate.promise;
        got += batch.length;
      },
      onEvent: (notice) => void notices.push(notice),
    });
    const other = mounted({ onRequests: (batch) => void (quick += batch.length) });
    const audience = new ObserverHub(log);
    audience.attach([slow, other]);
    for (let i = 0; i < 300; i++) audience.reportRequest(record(i));
    await turnEventLoop();
    for (let i = 0; i < 30_000; i++) {
      audience.reportRequest(record(i));
      if (i % 2_000 === 0) await turnEventLoop(1);
    }
    await audience.detach([other]);
    expect(quick).toBe(30_300);
    gate.resolve();
    await audience.detach([slow]);
    const [dropped] = notices;
    expect(dropped).toMatchObject({ type: "records_dropped" });
    const { records } = dropped as Extract<GatewayEvent, { type: "records_dropped" }>;
    expect(got + records).toBe(30_300);
    expect(got).toBeGreaterThanOrEqual(10_000);
    expect(logs).toContainEqual(expect.objectContaining({ level: "warn" }));
  });

  it("that throws is logged, and receives the next batch nevertheless", async () => {
    logs.length = 0;
    let batches = 0;
    const one = mounted({
      onRequests: () => {
        batches++;
        throw new Error("no luck");
      },
      onEvent: () => Promise.reject(new Error("nor here")),
    });
    const audience = new ObserverHub(log);
    audience.attach([one]);
    for (let i = 0; i < 600; i++) audience.reportRequest(record(i));
    audience.reportEvent({ type: "ledger", at: 1, ok: false });
    await audience.detach([one]);
    expect(batches).toBe(3);
    expect(logs.map(({ message }) => message)).toEqual(
      Array.from({ length: 4 }, () => "observer failed"),
    );
  });

  it("that sends data elsewhere receives private requests without labels and without the client's trace state", async () => {
    const heard: Record<string, unknown>[] = [];
    const see = (to: string): Observer => ({
      onRequests: (batch) =>
        void heard.push({
          [to]: batch.map(({ labels, trace }) => [labels["team"], trace.state, trace.spanId]),
        }),
    });
    const home = mounted(see("home"));
    const abroad = mounted(see("abroad"), { retention: "unknown" } as never);
    const audience = new ObserverHub(log);
    audience.attach([home, abroad]);
    for (const privacy of ["off", "required", "strict"] as const)
      audience.reportRequest(record(1, { privacy }));
    await audience.detach([home, abroad]);
    const { spanId, state } = TRACE;
    const all = ["web", state, spanId];
    const bare = [undefined, undefined, spanId];
    expect(heard).toEqual([{ home: [all, all, all] }, { abroad: [all, bare, bare] }]);
  });

  it("is ended once, after all earlier records, and has time for it", async () => {
    logs.length = 0;
    const heard: string[] = [];
    const one = mounted({
      async onRequests(batch) {
        await turnEventLoop(1);
        heard.push(...batch.map(({ id }) => id));
      },
      onEvent: ({ type }) => void heard.push(type),
      flush: () => void heard.push("end"),
    });
    const broken = mounted({ flush: () => Promise.reject(new Error("no luck")) });
    const audience = new ObserverHub(log);
    audience.attach([one, broken]);
    for (let i = 0; i < 600; i++) audience.reportRequest(record(i));
    const ended = audience.detach([one, broken]);
    audience.reportEvent({ type: "ledger", at: 1, ok: false });
    await ended;
    expect(heard.filter((what) => what === "end")).toHaveLength(1);
    expect([heard.length, heard.at(-1)]).toEqual([602, "end"]);
    expect(logs.map(({ message }) => message)).toEqual(["observer failed"]);
  });

  it("receives requests rejected before routing, in batches, with a limit of their own", async () => {
    logs.length = 0;
    const gate = Promise.withResolvers<void>();
    const heard: string[] = [];
    let [seen, most] = [0, 0];
    const one = mounted({
      onRequests: (batch) => void (seen += batch.length),
      async onRejected(batch) {
        most = Math.max(most, batch.length);
        heard.push(...batch.map(({ id }) => id));
        if (heard.length > 300) await gate.promise;
      },
    });
    const deaf = mounted({ onRequests: () => {} });
    const audience = new ObserverHub(log);
    audience.attach([one, deaf]);
    const refusal = (n: number) =>
      ({ at: n, id: `d${n}`, status: 404, code: "unknown_path", listener: "public" }) as const;
    for (let n = 0; n < 12_000; n++) {
      audience.reportRejection(refusal(n));
      if (n % 1_000 === 0) {
        audience.reportRequest(record(n));
        await turnEventLoop(1);
      }
    }
    gate.resolve();
    await audience.detach([one, deaf]);
    expect([seen, most]).toEqual([12, 256]);
    expect(heard.length).toBeGreaterThanOrEqual(10_000);
    // The events before it hung, and those that were queued since.
    expect(heard.length).toBeLessThan(11_500);
    expect(heard).toEqual(heard.map((_, n) => `d${n}`));
    expect(audience.droppedCounts()["observers.x"]).toBe(12_000 - heard.length);
  });

  it("of the host receives records of all generations, and is not counted", async () => {
    const got: string[] = [];
    const own = mounted({ onRequests: (batch) => void got.push(...batch.map(({ id }) => id)) });
    const audience = new ObserverHub(log, [own]);
    audience.reportRequest(record(1));
    audience.attach([]);
    audience.reportRequest(record(2));
    audience.attach([]);
    audience.reportRequest(record(3));
    await audience.close();
    expect([got, audience.droppedCounts()]).toEqual([["1", "2", "3"], {}]);
  });

  it("of an earlier generation receives its remaining records, and nothing later", async () => {
    const got: Record<string, string[]> = { old: [], new: [] };
    const see = (who: string) =>
      mounted({ onRequests: (batch) => void got[who]!.push(...batch.map(({ id }) => id)) });
    const [old, young] = [see("old"), see("new")];
    const audience = new ObserverHub(log);
    audience.attach([old]);
    audience.reportRequest(record(1));
    audience.attach([young]);
    audience.reportRequest(record(2));
    await audience.detach([old]);
    await audience.detach([young]);
    expect(got).toEqual({ old: ["1"], new: ["2"] });
  });
});

it("in a worker, all records are forwarded in order, in batches, and the rest at the end", async () => {
  const told: [string, unknown][] = [];
  const to = createRemoteSink(() => ({
    notify: (name, ...args) => void told.push([name, args[0]]),
  }));
  for (let i = 0; i < 600; i++) to.reportRequest(record(i));
  await turnEventLoop();
  to.reportEvent({ type: "ledger", at: 1, ok: true });
  to.flush();
  expect(told.map(([name, said]) => [name, Array.isArray(said) ? said.length : 1])).toEqual([
    ["reportRequest", 256],
    ["reportRequest", 256],
    ["reportEvent", 1],
    ["reportRequest", 88],
  ]);
  to.reportRequest(record(1));
  await until(() => told.length === 5);
  to.flush();
  expect(told).toHaveLength(5);
});
