// Ledger reads: few at the same time, one per key, few waiting; and a canceled read does not delay
// the next one.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault } from "tollgate/plugin";
import { createQueryLimiter, withQueryLimits } from "../../../src/runtime/ledger/usage-queries.ts";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { trialCount } from "../../kit/law-effort.ts";

interface Reading {
  key: string;
  signal: AbortSignal;
  done(): void;
}

function store() {
  const under: Reading[] = [];
  const read = (key: string | undefined, signal: AbortSignal) =>
    new Promise<never[]>((resolve) => {
      const one: Reading = {
        key: key ?? "",
        signal,
        done() {
          under.splice(under.indexOf(one), 1);
          resolve([]);
        },
      };
      under.push(one);
    });
  return {
    under,
    listEntries: async () => ({ items: [] }),
    sumEntries: (query: { key?: string | undefined }, of?: { signal?: AbortSignal | undefined }) =>
      read(query.key, of!.signal!),
  };
}

const turn = () => new Promise((r) => setImmediate(r));

describe("a read queue", () => {
  it("does not let a hundred aborted reads of one key delay another key's", async () => {
    const at = store();
    const { sumEntries } = withQueryLimits(at, createQueryLimiter(60_000));
    const codes: (string | undefined)[] = [];
    for (let i = 0; i < 100; i++) {
      const away = new AbortController();
      sumEntries({ key: "k1", by: [] }, { signal: away.signal }).catch((error: unknown) =>
        codes.push(getFault(error)?.code ?? getFault(error)?.kind),
      );
      away.abort();
    }
    await turn();
    // The first one runs until the store returns, and none of the others started.
    expect(at.under.map(({ key }) => key)).toEqual(["k1"]);
    expect(at.under[0]!.signal.aborted).toBe(true);
    expect(codes).toHaveLength(100);
    const other = sumEntries({ key: "k2", by: [] });
    await turn();
    expect(at.under.map(({ key }) => key)).toEqual(["k1", "k2"]);
    at.under[1]!.done();
    expect(await other).toEqual([]);
  });

  it("rejects reads of a key with too many waiting, and all if too many wait in total", async () => {
    const at = store();
    const { sumEntries } = withQueryLimits(at, createQueryLimiter(60_000));
    const faults: unknown[] = [];
    const ask = (key: string) =>
      void sumEntries({ key, by: [] }).catch((error: unknown) => faults.push(getFault(error)));
    for (let i = 0; i < BOUNDS.usageQueriesPerKey.max + 2; i++) ask("k1");
    await turn();
    expect(faults).toMatchObject([{ kind: "rate_limited", code: "too_many_reports" }]);
    for (let i = 0; i < BOUNDS.usageQueries.max * 2; i++) ask(`k${i + 2}`);
    await turn();
    expect(faults.at(-1)).toMatchObject({ kind: "overloaded", code: "gateway_busy" });
    expect(at.under.length).toBeLessThanOrEqual(4);
  });

  it("aborts a read after its timeout, and frees its place in the store", async () => {
    const at = store();
    const { sumEntries } = withQueryLimits(at, createQueryLimiter(20));
    const late = sumEntries({ key: "k1", by: [] }).catch((error: unknown) => getFault(error));
    expect(await late).toMatchObject({ kind: "unavailable", code: "ledger_unavailable" });
    expect(at.under).toHaveLength(1);
    at.under[0]!.done();
    await turn();
    void sumEntries({ key: "k1", by: [] }).catch(() => {});
    expect(at.under).toHaveLength(1);
  });

  it("keeps its limits under any load, and every caller gets a response", async () => {
    const step = fc.oneof(
      fc.record({ ask: fc.nat(5) }),
      fc.record({ abort: fc.nat() }),
      fc.record({ done: fc.nat() }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const at = store();
        const { sumEntries } = withQueryLimits(at, createQueryLimiter(60_000));
        const asked: { away: AbortController; over: Promise<unknown> }[] = [];
        for (const one of steps) {
          if ("ask" in one) {
            const away = new AbortController();
            const over = sumEntries({ key: `k${one.ask}`, by: [] }, { signal: away.signal });
            asked.push({ away, over: over.then(String, String) });
          } else if ("abort" in one) asked[one.abort % asked.length]?.away.abort();
          else at.under[one.done % at.under.length]?.done();
          await turn();
          expect(at.under.length).toBeLessThanOrEqual(4);
          expect(new Set(at.under.map(({ key }) => key)).size).toBe(at.under.length);
        }
        while (at.under.length > 0) {
          at.under[0]!.done();
          await turn();
        }
        await Promise.all(asked.map(({ over }) => over));
      }),
      { numRuns: trialCount(60) },
    );
  });
});
