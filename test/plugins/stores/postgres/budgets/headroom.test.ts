// If ample budget was left a moment ago, a batch is written without a check: no limit is exceeded,
// and no fitting call is rejected.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand } from "../../../../../src/testing/store.ts";
import { HeadroomCache } from "../../../../../plugins/stores/postgres/write/headroom-cache.ts";
import type { MeterDelta } from "../../../../../plugins/stores/postgres/rows/batch-plan.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

const sum = (of: Partial<MeterDelta> = {}): MeterDelta => ({
  id: "nano_usd|total|0|key:a",
  max: 1_000n,
  period: 0,
  idle: 0,
  take: 1n,
  calls: 1,
  released: 0n,
  used: 0n,
  required: 1n,
  running: 1n,
  ...of,
});
const state = (level: bigint, held = 0n) => `${level} ${held} 0 1000 0`;

describe("ample budget", () => {
  it("is the last report of the admission function about this meter only", () => {
    const ample = new HeadroomCache();
    expect(ample.hasHeadroom([sum()], 1, 0)).toBe(false);
    ample.update([sum()], [state(100n)], 0);
    expect(ample.hasHeadroom([sum()], 1, 0)).toBe(true);
    expect(ample.hasHeadroom([sum(), sum({ id: "other" })], 1, 0)).toBe(false);
    expect(ample.hasHeadroom([sum()], 1, 249)).toBe(true);
    expect(ample.hasHeadroom([sum()], 1, 250)).toBe(false);
  });

  it("is 64 batches of its size, beyond usage, reservations, and the batch itself", () => {
    for (const [level, held, is] of [
      [935n, 0n, true],
      [936n, 0n, false],
      [0n, 936n, false],
      [500n, 435n, true],
    ] as const) {
      const ample = new HeadroomCache();
      ample.update([sum()], [state(level, held)], 0);
      expect(ample.hasHeadroom([sum()], 0, 0)).toBe(is);
    }
    const ample = new HeadroomCache();
    ample.update([sum()], [state(0n)], 0);
    expect(ample.hasHeadroom([sum({ required: 15n })], 0, 0)).toBe(true);
    expect(ample.hasHeadroom([sum({ required: 16n })], 0, 0)).toBe(false);
  });

  it("is counted in calls for rate limits", () => {
    const rate = sum({ period: 60_000 });
    for (const [calls, is] of [
      [935n, true],
      [936n, false],
    ] as const) {
      const ample = new HeadroomCache();
      ample.update([rate], [state(calls * 60_000n)], 0);
      expect(ample.hasHeadroom([rate], 0, 0)).toBe(is);
    }
  });

  it("is not needed if calls only end, but their meter must be known", () => {
    const ends = sum({ max: null, required: null, take: 0n });
    const ample = new HeadroomCache();
    expect(ample.hasHeadroom([ends], 0, 0)).toBe(false);
    ample.update([ends], [state(10_000n)], 0);
    expect(ample.hasHeadroom([ends], 0, 0)).toBe(true);
    expect(ample.hasHeadroom([sum()], 0, 0)).toBe(false);
    // The known rest stays known.
    ample.update([sum()], [state(0n)], 0);
    ample.update([ends], [state(0n)], 200);
    expect(ample.hasHeadroom([sum()], 0, 300)).toBe(true);
  });

  it("is unknown on another connection, and after an error", () => {
    const ample = new HeadroomCache();
    ample.hasHeadroom([], 1, 0);
    ample.update([sum()], [state(0n)], 0);
    expect(ample.hasHeadroom([sum()], 2, 0)).toBe(false);
    ample.update([sum()], [state(0n)], 0);
    ample.clear();
    expect(ample.hasHeadroom([sum()], 2, 0)).toBe(false);
  });

  it("is remembered for some thousand meters", () => {
    const ample = new HeadroomCache();
    ample.update([sum()], [state(0n)], 0);
    for (let i = 0; i < 10_000; i++) ample.update([sum({ id: `m${i}` })], [state(0n)], 0);
    expect(ample.hasHeadroom([sum()], 0, 0)).toBe(false);
  });
});

describe.skipIf(!hasPostgres())("a gateway with ample budget", () => {
  let server: Postgres;
  beforeAll(async () => void (server = await startPostgres()));
  afterAll(() => server?.[Symbol.asyncDispose]());

  const claims = (take: bigint) =>
    [{ scope: "account:a", unit: "nano_usd", max: 10_000n, per: "total", take }] as const;
  let n = 0;
  const taken = async (store: Store, take: bigint, calls = 1): Promise<number> => {
    const batch = Array.from({ length: calls }, () =>
      reserveCommand(`ample.${n++}`, { at: Date.now(), claims: claims(take) }),
    );
    return (await store.apply(batch)).filter(({ ok }) => ok).length;
  };

  it("admits what fits, and no more if another gateway used the budget", async () => {
    const url = await server.database();
    const { store: one, openAnother, dispose } = await makePostgres(url, { clock: "database" });
    const other = await openAnother();
    await one.open({ instance: "one" });
    await other.open({ instance: "other" });
    expect(await taken(one, 1n, 5)).toBe(5);
    // It has seen the rest, and the other one leaves seven of it.
    expect(await taken(other, 9_988n)).toBe(1);
    expect(await taken(one, 1n, 20)).toBe(7);
    expect(await taken(one, 1n)).toBe(0);
    await dispose();
  });

  it("notices that the database's clock was set back, and uses its time for rate limits", async () => {
    const url = await server.database();
    const { store, dispose } = await makePostgres(url, { clock: "database" });
    await using by = askAt(url);
    await store.open({ instance: "one" });
    const rate = { scope: "key:k", unit: "requests", max: 1_000, per: "hour", take: 1n } as const;
    const ask = async () => {
      const [verdict] = await store.apply([
        reserveCommand(`ample.${n++}`, { at: Date.now(), claims: [rate] }),
      ]);
      expect(verdict).toMatchObject({ ok: true });
    };
    await ask();
    await by.ask("UPDATE tollgate.meter SET at = at + 3600000 WHERE id LIKE 'requests|hour|%'");
    await ask();
    const [meter] = await by.ask("SELECT at FROM tollgate.meter WHERE id LIKE 'requests|hour|%'");
    // It is an hour behind the meter's, or unknown.
    const now = Date.now();
    expect(Number(meter!["at"])).toBeLessThan(now + 1_800_000);
    await dispose();
  });
});
