// A budget that is spent closes the sockets that it pays for, on a clock of the test's own.
import { describe, expect, it } from "vitest";
import type { Limit, LimitUsage } from "tollgate/plugin";
import {
  OpenSockets,
  SOCKET_TIMES,
  type OpenSocket,
} from "../../../../src/runtime/sockets/open-sockets.ts";
import { SpentBudgets } from "../../../../src/runtime/sockets/spent-budgets.ts";
import { turnEventLoop } from "../../../kit/wait.ts";

const budget = (scope: string, max = 100): Limit => ({
  scope,
  unit: "nano_usd",
  max,
  per: "month",
});

function scene() {
  let now = 0;
  const open = new OpenSockets(SOCKET_TIMES, () => now);
  const used: Record<string, bigint> = {};
  const reads: string[][] = [];
  let isDown = false;
  let answers: Promise<void> | undefined;
  const readLimits = async (limits: readonly Limit[]): Promise<LimitUsage[]> => {
    reads.push(limits.map(({ scope }) => scope));
    if (isDown) throw new Error("down");
    await answers;
    return limits.map((one) => ({ ...one, used: used[one.scope] ?? 0n }) as never);
  };
  let gen = {};
  const budgets = new SpentBudgets({ readLimits }, open, () => gen);
  const add = (own: readonly Limit[], shared: readonly Limit[] = []) => {
    const closed: number[] = [];
    const socket = {
      isClosing: false,
      isPaused: false,
      hasReceivedData: true,
      messagesIn: 0,
      bytesOut: 0,
      ping() {},
      close() {},
      terminate() {},
    };
    const one = {
      socket,
      frontend: "responses",
      running: 0,
      isBusy: false,
      finish() {},
      checkKey: async () => undefined,
      closeWith(fault: { code: string }, code: number) {
        expect(fault.code).toBe("insufficient_quota");
        socket.isClosing = true;
        closed.push(code);
      },
    } as unknown as OpenSocket;
    const watch = (limits: readonly Limit[]) =>
      budgets.watch(one, {
        identity: { id: "k", limits },
        state: { admission: { account: { limits: shared } } },
      } as never);
    watch(own);
    open.add(one);
    /** A request for which middleware declared these limits. */
    const settle = (limits: readonly Limit[]) =>
      budgets.onSettled(one, {
        identity: { id: "k", limits: own },
        state: { gen, admission: { account: undefined }, billing: { denyingLimits: limits } },
      } as never);
    return { closed, one, watch, settle };
  };
  /** Passes this time, and lets the reads end. */
  const pass = async (ms: number) => {
    for (const end = now + ms; now < end;) {
      now += 1_000;
      open.sweep();
      await turnEventLoop();
    }
  };
  const reload = () => void (gen = {});
  return {
    open,
    used,
    reads,
    budgets,
    add,
    pass,
    reload,
    fail: (down: boolean) => void (isDown = down),
    /** Lets the store answer only when the returned function is called. */
    hang() {
      const { promise, resolve } = Promise.withResolvers<void>();
      answers = promise;
      return resolve;
    },
  };
}

describe("a spent budget", () => {
  it("closes an idle socket of its key at the next second, wherever it was spent", async () => {
    const { add, used, pass } = scene();
    const mine = add([budget("key:a")]);
    const other = add([budget("key:b")]);
    await pass(3_000);
    expect(mine.closed).toEqual([]);
    used["key:a"] = 100n;
    await pass(1_000);
    expect(mine.closed).toEqual([1008]);
    expect(other.closed).toEqual([]);
  });

  it("of an account closes the sockets of all of its keys", async () => {
    const { add, used, pass } = scene();
    const all = [1, 2].map((n) => add([budget(`key:${n}`)], [budget("account:acme")]));
    used["account:acme"] = 101n;
    await pass(1_000);
    expect(all.map(({ closed }) => closed)).toEqual([[1008], [1008]]);
  });

  it("is read once per second for all sockets, and each budget only once", async () => {
    const { add, reads, pass } = scene();
    for (let i = 0; i < 50; i++) add([budget("key:a")], [budget("account:acme")]);
    await pass(2_000);
    expect(reads).toEqual([
      ["key:a", "account:acme"],
      ["key:a", "account:acme"],
    ]);
  });

  it("is not read where there is none", async () => {
    const { add, reads, pass } = scene();
    add([{ scope: "key:a", unit: "requests", max: 1, per: "minute" }]);
    await pass(3_000);
    expect(reads).toEqual([]);
  });

  it("is read in batches, so that the store can do other work between them", async () => {
    const { add, reads, pass, used } = scene();
    const all = Array.from({ length: 1_200 }, (_, i) => add([budget(`key:${i}`)]));
    used["key:1100"] = 100n;
    await pass(1_000);
    expect(reads.map(({ length }) => length)).toEqual([500, 500, 200]);
    expect(all.flatMap(({ closed }, i) => (closed.length > 0 ? [i] : []))).toEqual([1_100]);
  });

  it("is read with no others when a request of its socket is settled", async () => {
    const { add, reads, used } = scene();
    const mine = add([budget("key:a")]);
    for (let i = 0; i < 50; i++) add([budget(`key:${i}`)]);
    used["key:a"] = 100n;
    mine.settle([budget("key:a")]);
    await turnEventLoop();
    expect(reads).toEqual([["key:a"]]);
    expect(mine.closed).toEqual([1008]);
  });

  it("has one read at a time, however slow the store is", async () => {
    const { add, reads, pass, used, hang } = scene();
    const mine = add([budget("key:a")]);
    const answer = hang();
    await pass(5_000);
    for (let i = 0; i < 5; i++) mine.settle([]);
    expect(reads.length).toBe(1);
    used["key:a"] = 100n;
    answer();
    await turnEventLoop();
    expect(mine.closed).toEqual([1008]);
    await pass(2_000);
    expect(reads.length).toBe(2);
  });

  it("in dollars per hour is a rate, which does not close the socket", async () => {
    const { add, used, reads, pass } = scene();
    const { closed } = add([{ ...budget("key:a"), per: "hour" }]);
    used["key:a"] = 100n;
    await pass(2_000);
    expect([closed, reads]).toEqual([[], []]);
  });

  it("that was raised does not close the socket, and one that was lowered does", async () => {
    const { add, used, pass } = scene();
    const { closed, watch } = add([budget("key:a", 100)]);
    used["key:a"] = 99n;
    watch([budget("key:a", 200)]);
    used["key:a"] = 150n;
    await pass(1_000);
    expect(closed).toEqual([]);
    watch([budget("key:a", 120)]);
    await pass(1_000);
    expect(closed).toEqual([1008]);
  });

  it("that middleware declared closes the socket, until the config changes", async () => {
    const { add, used, pass, reload } = scene();
    const kept = add([]);
    kept.settle([budget("default:a", 50)]);
    reload();
    used["default:a"] = 60n;
    await pass(2_000);
    expect(kept.closed).toEqual([]);
    kept.settle([budget("default:a", 50)]);
    await pass(1_000);
    expect(kept.closed).toEqual([1008]);
  });

  it("of an earlier request does not count after the key got a higher one", async () => {
    const { add, used, pass } = scene();
    const { closed, watch, settle } = add([budget("key:a", 100)]);
    settle([budget("key:a", 100)]);
    watch([budget("key:a", 200)]);
    used["key:a"] = 150n;
    await pass(1_000);
    expect(closed).toEqual([]);
  });

  it("is unknown while the store does not answer", async () => {
    const { add, used, pass, fail } = scene();
    const { closed } = add([budget("key:a")]);
    used["key:a"] = 100n;
    fail(true);
    await pass(2_000);
    expect(closed).toEqual([]);
    fail(false);
    await pass(1_000);
    expect(closed).toEqual([1008]);
  });
});
