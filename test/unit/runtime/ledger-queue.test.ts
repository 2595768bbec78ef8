import * as fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { turnEventLoop, until } from "../../kit/wait.ts";
import type { LedgerQueueOptions } from "../../../src/runtime/ledger/ledger-queue-api.ts";
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import type { StoreCommand, Store, CommandResult } from "../../../src/plugin/store/store.ts";
import { createTestContext } from "../../../src/testing/context.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import memory from "../../../plugins/stores/memory.ts";
import { trialCount } from "../../kit/law-effort.ts";

/** A real store behind a gate: batches can be held, rejected, or delayed. */
async function house(options: LedgerQueueOptions = {}) {
  const lent = createTestContext();
  onTestFinished(() => lent.end());
  const store: Store = await memory.setup({ keep: 100_000 }, lent.ctx);
  await store.open({ instance: "i" });
  const batches: string[][] = [];
  let gate: (batch: readonly StoreCommand[]) => unknown = () => {};
  const told: (string | undefined)[] = [];
  const ledger = createLedgerQueue(
    {
      async apply(batch): Promise<readonly CommandResult[]> {
        batches.push(batch.map((c) => ("attempt" in c ? `${c.do} ${c.attempt}` : c.do)));
        await gate(batch);
        return store.apply(batch);
      },
    },
    { onFailureChange: (trouble) => void told.push(trouble?.reason), ...options },
  );
  const kinds = async (attempt: string) =>
    (await store.listEntries({ attempt })).items.map(({ kind, state }) => `${kind} ${state}`);
  return { ledger, store, batches, told, kinds, gate: (g: typeof gate) => void (gate = g) };
}

/** The store's timeout, for tests about it. */
const IMPATIENT = { storeTimeoutMs: 60 };

function latch() {
  let open = () => {};
  const shut = new Promise<void>((resolve) => (open = resolve));
  return { shut, open };
}

describe("group commit", () => {
  it("commands of one turn form a batch; later commands form the next one", async () => {
    const h = await house();
    const { shut, open } = latch();
    h.gate(() => shut);
    const first = [h.ledger.reserve(reserveCommand("a")), h.ledger.reserve(reserveCommand("b"))];
    await until(() => h.batches.length === 1);
    const then = ["c", "d", "e"].map((attempt) => h.ledger.reserve(reserveCommand(attempt)));
    await turnEventLoop();
    expect(h.batches).toEqual([["reserve a", "reserve b"]]);
    open();
    await Promise.all([...first, ...then]);
    expect(h.batches[1]).toEqual(["reserve c", "reserve d", "reserve e"]);
    expect(h.batches.length).toBe(2);
  });

  it("a single command is committed immediately", async () => {
    const h = await house();
    let turns = 0;
    let over = false;
    const turn = () => void (turns++, over || setImmediate(turn));
    turn();
    for (let i = 0; i < 100; i++) await h.ledger.reserve(reserveCommand(`a${i}`));
    over = true;
    // A timer of 1 ms is hundreds of turns of an idle event loop.
    expect(turns).toBeLessThan(1_000);
  });

  it("each caller gets its own result", async () => {
    const h = await house();
    const claims = [{ scope: "k", unit: "requests", max: 2, per: "day", take: 1n }] as const;
    const verdicts = await Promise.all(
      ["a", "b", "c"].map((attempt) => h.ledger.reserve(reserveCommand(attempt, { claims }))),
    );
    expect(verdicts.map(({ ok }) => ok)).toEqual([true, true, false]);
  });

  it("an invalid command costs its neighbors a few commits, and changes no other result", async () => {
    const run = async (bad: ReadonlySet<number>, n: number) => {
      const h = await house();
      const all = Array.from({ length: n }, (_, i) =>
        // A settle without its reserve.
        bad.has(i)
          ? h.ledger.settle(settleCommand(`none${i}`))
          : h.ledger.reserve(reserveCommand(`a${i}`)),
      );
      const ends = await Promise.allSettled(all);
      expect(ends.map(({ status }) => status)).toEqual(
        all.map((_, i) => (bad.has(i) ? "rejected" : "fulfilled")),
      );
      const written = (await h.store.listEntries({}, { limit: 2_000 })).items.map((e) => e.attempt);
      expect(written).toEqual(all.flatMap((_, i) => (bad.has(i) ? [] : [`a${i}`])));
      return h.batches.length;
    };
    expect(await run(new Set([700]), 1_000)).toBeLessThan(25);
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(199), { maxLength: 6 }), async (bad) => {
        const most = 1 + bad.length * 2 * (Math.ceil(Math.log2(200)) + 1);
        expect(await run(new Set(bad), 200)).toBeLessThanOrEqual(most);
      }),
      { numRuns: trialCount(20) },
    );
  });

  it("only the last progress is sent, and none after the settle", async () => {
    const h = await house();
    await h.ledger.reserve(reserveCommand("a"));
    const { shut, open } = latch();
    h.gate(() => shut);
    const held = h.ledger.reserve(reserveCommand("b"));
    await until(() => h.batches.length === 2);
    for (let i = 1; i < 9; i++)
      h.ledger.progress({ do: "progress", at: NOON, attempt: "a", usage: { output: i } });
    h.ledger.progress({ do: "progress", at: NOON, attempt: "b", usage: {} });
    const settled = h.ledger.settle(settleCommand("b"));
    open();
    await Promise.all([held, settled]);
    expect(h.batches.at(-1)).toEqual(["progress a", "settle b"]);
    const next = await h.store.open({ instance: "j" });
    expect(next.recovered).toBe(1);
    expect((await h.store.listEntries({ attempt: "a" })).items[1]?.usage).toEqual({ output: 8 });
  });

  it("a price is written once, before the first reserve that refers to it", async () => {
    const h = await house();
    const price = { lines: [] };
    await h.ledger.reserve(reserveCommand("a", { price: "p" }), price);
    await h.ledger.reserve(reserveCommand("b", { price: "p" }), price);
    expect(h.batches).toEqual([["price", "reserve a"], ["reserve b"]]);
    expect(await h.store.findPrice?.("p")).toEqual(price);
  });
});

describe("a rejected batch", () => {
  it("with one invalid command: the others get their results", async () => {
    const h = await house();
    const results = await Promise.allSettled([
      h.ledger.reserve(reserveCommand("a")),
      h.ledger.settle(settleCommand("nobody")),
      h.ledger.reserve(reserveCommand("b")),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(h.ledger.isHealthy).toBe(true);
    expect(await h.kinds("b")).toEqual(["reserve open"]);
  });

  it("settles are retried until they are written; readiness and the log report it", async () => {
    const h = await house();
    await h.ledger.reserve(reserveCommand("a"));
    let failures = 0;
    let full = true;
    h.gate(() => {
      if (!full) return;
      failures++;
      throw new Error("disk full");
    });
    const settled = h.ledger.settle(settleCommand("a"));
    await until(() => failures === 3);
    expect(h.ledger.isHealthy).toBe(false);
    expect(h.ledger.failure).toBe("disk full");
    full = false;
    await settled;
    await h.ledger.flush();
    expect(h.ledger.isHealthy).toBe(true);
    expect(await h.kinds("a")).toEqual(["reserve open", "settle exact"]);
    expect(h.told).toEqual(["disk full", undefined]);
  });

  it("reserves are rejected in time, and never written afterwards", async () => {
    const h = await house(IMPATIENT);
    let broken = true;
    h.gate(() => {
      if (broken) throw new Error("disk full");
    });
    // While it still fails.
    await expect(h.ledger.reserve(reserveCommand("a"))).rejects.toThrow(/ledger cannot be written/);
    await expect(h.ledger.reserve(reserveCommand("b"))).rejects.toThrow();
    broken = false;
    await h.ledger.flush();
    expect(await h.kinds("a")).toEqual([]);
    expect((await h.ledger.reserve(reserveCommand("c"))).ok).toBe(true);
  });

  it("a rejected batch may be committed: a rejected reserve is then undone", async () => {
    const h = await house(IMPATIENT);
    // The response is lost, and then the connection.
    h.gate(async (batch) => {
      if (batch.some((c) => c.do === "reserve")) await h.store.apply(batch);
      throw new Error("gone");
    });
    const [lost, kept] = [
      h.ledger.reserve(reserveCommand("lost")),
      h.ledger.reserve(reserveCommand("b")),
    ];
    await expect(Promise.all([lost, kept])).rejects.toThrow(/ledger cannot be written/);
    expect(await h.kinds("lost")).toEqual(["reserve open"]);
    h.gate(() => {});
    await h.ledger.flush();
    expect(await h.kinds("lost")).toEqual(["reserve open", "settle void"]);
    expect(await h.kinds("b")).toEqual(["reserve open", "settle void"]);
  });

  it("settles are written although reserves cannot be, because the disk only has space for them", async () => {
    const h = await house(IMPATIENT);
    await h.ledger.reserve(reserveCommand("a"));
    let full = true;
    h.gate((batch) => {
      if (full && batch.some((c) => c.do === "reserve" || c.do === "heartbeat"))
        throw new Error("disk full");
    });
    const refused = h.ledger.reserve(reserveCommand("b")).catch(() => "refused");
    await h.ledger.settle(settleCommand("a"));
    expect(h.ledger.isHealthy).toBe(false);
    expect(await refused).toBe("refused");
    full = false;
    await h.ledger.flush();
    expect(h.ledger.isHealthy).toBe(true);
    expect(await h.kinds("b")).toEqual([]);
  });
});

describe("a slow store", () => {
  it("delays no caller beyond the timeout, and late reserves are undone", async () => {
    const h = await house(IMPATIENT);
    const { shut, open } = latch();
    h.gate(() => shut);
    const asked = h.ledger.reserve(reserveCommand("a"));
    await until(() => h.batches.length === 1);
    const queued = h.ledger.reserve(reserveCommand("b"));
    const both = await Promise.allSettled([asked, queued]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(h.ledger.isHealthy).toBe(false);
    open();
    await h.ledger.flush();
    expect(h.ledger.isHealthy).toBe(true);
    expect(await h.kinds("a")).toEqual(["reserve open", "settle void"]);
    expect(await h.kinds("b")).toEqual([]);
  });
});

describe("shutdown", () => {
  it("writes open commands and accepts no new ones", async () => {
    const h = await house();
    await h.ledger.reserve(reserveCommand("a"));
    void h.ledger.settle(settleCommand("a"));
    await h.ledger.close();
    expect(await h.kinds("a")).toEqual(["reserve open", "settle exact"]);
    await expect(h.ledger.reserve(reserveCommand("b"))).rejects.toThrow();
  });

  it("ends although the store does not, and reports what was lost", async () => {
    const h = await house();
    await h.ledger.reserve(reserveCommand("a"));
    h.gate(() => {
      throw new Error("gone");
    });
    const settled = h.ledger.settle(settleCommand("a")).catch(() => "lost");
    await turnEventLoop();
    await expect(h.ledger.close(50)).rejects.toThrow(/unwritten commands/);
    expect(await settled).toBe("lost");
  });
});

describe("a store that reports itself unreachable", () => {
  it("rejects every new and waiting call immediately, and owed rows are written when it responds", async () => {
    const h = await house();
    await h.ledger.reserve(reserveCommand("a"));
    const { shut, open } = latch();
    h.gate(() => shut);
    const under = h.ledger.reserve(reserveCommand("b"));
    await until(() => h.batches.length === 2);
    const waiting = h.ledger.reserve(reserveCommand("c"));
    const owed = h.ledger.settle(settleCommand("a"));
    h.ledger.markUnreachable("connection refused");
    for (const call of [under, waiting, h.ledger.reserve(reserveCommand("d"))])
      await expect(call).rejects.toThrow(/ledger cannot be written/);
    expect([h.ledger.isHealthy, h.ledger.isUnreachable]).toEqual([false, true]);
    open();
    await owed;
    await h.ledger.flush();
    expect([h.ledger.isHealthy, h.ledger.isUnreachable]).toEqual([true, false]);
    expect(await h.kinds("a")).toEqual(["reserve open", "settle exact"]);
    // The store had accepted it.
    expect(await h.kinds("b")).toEqual(["reserve open", "settle void"]);
    expect([await h.kinds("c"), await h.kinds("d")]).toEqual([[], []]);
    expect((await h.ledger.reserve(reserveCommand("e"))).ok).toBe(true);
    expect(h.told).toEqual(["connection refused", undefined]);
  });

  it("is probed until it responds, also without open calls", async () => {
    const h = await house();
    let away = true;
    h.gate(() => {
      if (away) throw new Error("gone");
    });
    h.ledger.markUnreachable("gone");
    await until(() => h.batches.length >= 3);
    await expect(h.ledger.reserve(reserveCommand("a"))).rejects.toThrow();
    away = false;
    await until(() => h.ledger.isHealthy);
    expect((await h.ledger.reserve(reserveCommand("b"))).ok).toBe(true);
  });

  it("gets the gateway's status with each heartbeat", async () => {
    const about = { version: "1", host: "h", pid: 1, generation: 2 };
    const h = await house({ instanceInfo: () => about });
    const heard: StoreCommand[] = [];
    h.gate((batch) => void heard.push(...batch));
    await h.ledger.flush();
    expect(heard).toMatchObject([{ do: "heartbeat", info: about }]);
  });
});
