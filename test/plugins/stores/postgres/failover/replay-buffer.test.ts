// The second copy of acknowledged rows, and its replay to a database that was set back.
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFault } from "../../../../../src/model/error.ts";
import type { StoreCommand, CommandResult } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import {
  replayBatches,
  ReplayBuffer,
  replayBatch,
} from "../../../../../plugins/stores/postgres/offline/replay-buffer.ts";

const claim = (take: bigint) =>
  ({ scope: "key:alice", unit: "nano_usd", max: 10n, per: "total", take }) as const;
const OK: CommandResult = { ok: true };
const batch = (n: number): StoreCommand[] => [reserveCommand(`a${n}`), settleCommand(`b${n}`)];
const kept = (ring: ReplayBuffer, n: number) => ring.add(batch(n), [OK, OK], n);

afterEach(() => vi.useRealTimers());

describe("stored state", () => {
  it("contains committed commands: no rejections, heartbeats, or progress", () => {
    const denied = { ok: false } as CommandResult;
    const commands: StoreCommand[] = [
      reserveCommand("a"),
      reserveCommand("b"),
      { do: "heartbeat", at: 1 },
      { do: "progress", at: 1, attempt: "a", usage: {} },
      settleCommand("c"),
    ];
    const facts = new ReplayBuffer().add(commands, [OK, denied, OK, OK, OK], 1);
    expect(facts).toEqual([reserveCommand("a"), settleCommand("c")]);
    const ring = new ReplayBuffer();
    expect(ring.add([{ do: "heartbeat", at: 1 }], [OK], 1)).toEqual([]);
    expect(ring.takeAfter(0).batches).toEqual([]);
  });

  it("returns commands after a number, in order, and removes them", () => {
    const ring = new ReplayBuffer();
    for (const n of [1, 2, 3, 4]) kept(ring, n);
    expect(ring.takeAfter(2)).toEqual({ batches: [batch(3), batch(4)], whole: true });
    expect(ring.takeAfter(0)).toEqual({ batches: [batch(1), batch(2)], whole: true });
    kept(ring, 5);
    expect(ring.takeAfter(-1).batches).toEqual([batch(5)]);
    expect(ring.takeAfter(-1).batches).toEqual([]);
  });

  it("replays commands before the node's current row, if the database was set back to before its newest", () => {
    const ring = new ReplayBuffer();
    for (const n of [1, 2]) kept(ring, n);
    ring.onNewNode();
    for (const n of [1, 2, 3]) kept(ring, n);
    // In the order of arrival.
    expect(ring.takeAfter(1)).toEqual({
      batches: [batch(1), batch(2), batch(2), batch(3)],
      whole: true,
    });
    expect(ring.takeAfter(0)).toEqual({ batches: [batch(1)], whole: true });
  });

  it("covers a minute, and reports a request for more", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const ring = new ReplayBuffer();
    for (let n = 1; n <= 20; n++) {
      kept(ring, n);
      vi.advanceTimersByTime(10_000);
    }
    // When 20 arrived, at most a minute had passed since number 14 and later ones.
    expect(ring.takeAfter(12).whole).toBe(false);
    const { batches, whole } = ring.takeAfter(13);
    expect([batches, whole]).toEqual([[], true]);
  });

  it("has a maximum number of commands", () => {
    const ring = new ReplayBuffer();
    const many = Array.from({ length: 150_000 }, (_, i) => settleCommand(`a${i}`));
    const all = many.map(() => OK);
    ring.add(many, all, 1);
    ring.add(many, all, 2);
    expect(ring.takeAfter(0)).toMatchObject({ whole: false, batches: { length: 1 } });
  });
});

describe("a replay", () => {
  const invalid = () => createFault("invalid", "It is there in another way.");
  const store = (answer: (command: StoreCommand) => CommandResult | "invalid") => {
    const heard: StoreCommand[][] = [];
    return {
      heard,
      async exactly(commands: readonly StoreCommand[]) {
        heard.push([...commands]);
        return commands.map((command) => {
          const said = answer(command);
          if (said === "invalid") throw invalid();
          return said;
        });
      },
    };
  };

  it("uses what it used before, although others have spent the budget", async () => {
    const full = reserveCommand("full", { claims: [claim(7n)] });
    let denied = true;
    const { heard, exactly } = store((c) => {
      if (!("attempt" in c) || c.attempt !== "full" || !denied) return OK;
      denied = false;
      return { ok: false, denied: claim(7n), retryAfterMs: 0 } as never;
    });
    await replayBatch([reserveCommand("a"), full], exactly);
    expect(heard).toHaveLength(2);
    const [again] = heard[1] as [typeof full];
    expect(again.attempt).toBe("full");
    expect(again.claims[0]).toMatchObject({ take: 7n, max: 10n ** 24n + 10n });
  });

  it("sends commands one by one if one of them is impossible", async () => {
    const { heard, exactly } = store((c) =>
      "attempt" in c && c.attempt === "bad" ? "invalid" : OK,
    );
    await replayBatch([settleCommand("a"), settleCommand("bad"), settleCommand("c")], exactly);
    expect(heard.slice(1)).toEqual([
      [settleCommand("a")],
      [settleCommand("bad")],
      [settleCommand("c")],
    ]);
  });

  it("stays in the spool if the database is unreachable again, and continues there", async () => {
    let away = false;
    const owed = [batch(1), batch(2), batch(3)];
    const { heard, exactly } = store(() => {
      if (away) throw new Error("ECONNRESET");
      return OK;
    });
    const broken = async (commands: readonly StoreCommand[]) => {
      if (heard.length === 1) away = true;
      return exactly(commands);
    };
    await expect(replayBatches(owed, broken)).rejects.toThrow("ECONNRESET");
    expect(owed).toEqual([batch(2), batch(3)]);
    away = false;
    heard.length = 0;
    await replayBatches(owed, exactly);
    expect([heard, owed]).toEqual([[batch(2), batch(3)], []]);
  });
});
