// The second copy of what was acknowledged, and how it is told to a database that was set back.
import { afterEach, describe, expect, it, vi } from "vitest";
import { fault } from "../../../src/model/error.ts";
import type { StoreCommand, Verdict } from "../../../src/plugin/store.ts";
import { reserve, settle } from "../../../src/testing/store.ts";
import { mend, Ring, tellAgain } from "../../../plugins/stores/postgres/ring.ts";

const claim = (take: bigint) =>
  ({ scope: "key:alice", unit: "nano_usd", max: 10n, per: "total", take }) as const;
const OK: Verdict = { ok: true };
const batch = (n: number): StoreCommand[] => [reserve(`a${n}`), settle(`b${n}`)];
const kept = (ring: Ring, n: number) => ring.keep(batch(n), [OK, OK], n);

afterEach(() => vi.useRealTimers());

describe("what is kept", () => {
  it("is what has happened: no refusal, no sign of life, no progress", () => {
    const denied = { ok: false } as Verdict;
    const commands: StoreCommand[] = [
      reserve("a"),
      reserve("b"),
      { do: "alive", at: 1 },
      { do: "progress", at: 1, attempt: "a", usage: {} },
      settle("c"),
    ];
    const facts = new Ring().keep(commands, [OK, denied, OK, OK, OK], 1);
    expect(facts).toEqual([reserve("a"), settle("c")]);
    const ring = new Ring();
    expect(ring.keep([{ do: "alive", at: 1 }], [OK], 1)).toEqual([]);
    expect(ring.after(0).batches).toEqual([]);
  });

  it("is what came after a number, in its order, and is taken out", () => {
    const ring = new Ring();
    for (const n of [1, 2, 3, 4]) kept(ring, n);
    expect(ring.after(2)).toEqual({ batches: [batch(3), batch(4)], whole: true });
    expect(ring.after(0)).toEqual({ batches: [batch(1), batch(2)], whole: true });
    kept(ring, 5);
    expect(ring.after(-1).batches).toEqual([batch(5)]);
    expect(ring.after(-1).batches).toEqual([]);
  });

  it("is told again from before the row that the node has now, where a database is set back to before that row's newest", () => {
    const ring = new Ring();
    for (const n of [1, 2]) kept(ring, n);
    ring.begin();
    for (const n of [1, 2, 3]) kept(ring, n);
    // In the order in which they came.
    expect(ring.after(1)).toEqual({
      batches: [batch(1), batch(2), batch(2), batch(3)],
      whole: true,
    });
    expect(ring.after(0)).toEqual({ batches: [batch(1)], whole: true });
  });

  it("is a minute, and says so where more is asked for", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const ring = new Ring();
    for (let n = 1; n <= 20; n++) {
      kept(ring, n);
      vi.advanceTimersByTime(10_000);
    }
    // Of number 14 and those after it no more than a minute has gone by when 20 came.
    expect(ring.after(12).whole).toBe(false);
    const { batches, whole } = ring.after(13);
    expect([batches, whole]).toEqual([[], true]);
  });

  it("is so many commands at most", () => {
    const ring = new Ring();
    const many = Array.from({ length: 150_000 }, (_, i) => settle(`a${i}`));
    const all = many.map(() => OK);
    ring.keep(many, all, 1);
    ring.keep(many, all, 2);
    expect(ring.after(0)).toMatchObject({ whole: false, batches: { length: 1 } });
  });
});

describe("what is told again", () => {
  const invalid = () => fault("invalid", "It is there in another way.");
  const store = (answer: (command: StoreCommand) => Verdict | "invalid") => {
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

  it("takes what it took, also where others have spent the room meanwhile", async () => {
    const full = reserve("full", { claims: [claim(7n)] });
    let denied = true;
    const { heard, exactly } = store((c) => {
      if (!("attempt" in c) || c.attempt !== "full" || !denied) return OK;
      denied = false;
      return { ok: false, denied: claim(7n), retryAfterMs: 0 } as never;
    });
    await tellAgain([reserve("a"), full], exactly);
    expect(heard).toHaveLength(2);
    const [again] = heard[1] as [typeof full];
    expect(again.attempt).toBe("full");
    expect(again.claims[0]).toMatchObject({ take: 7n, max: 10n ** 24n + 10n });
  });

  it("is told one by one where one of them cannot be", async () => {
    const { heard, exactly } = store((c) =>
      "attempt" in c && c.attempt === "bad" ? "invalid" : OK,
    );
    await tellAgain([settle("a"), settle("bad"), settle("c")], exactly);
    expect(heard.slice(1)).toEqual([[settle("a")], [settle("bad")], [settle("c")]]);
  });

  it("stays owed where the database is away again, and goes on there", async () => {
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
    await expect(mend(owed, broken)).rejects.toThrow("ECONNRESET");
    expect(owed).toEqual([batch(2), batch(3)]);
    away = false;
    heard.length = 0;
    await mend(owed, exactly);
    expect([heard, owed]).toEqual([[batch(2), batch(3)], []]);
  });
});
