// A gateway's knowledge of its leases, on a real database: the calls that they count, and the rest
// after an unknown outcome.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { insertNode } from "../../../../../plugins/stores/postgres/membership/heartbeat.ts";
import type { MeterDelta } from "../../../../../plugins/stores/postgres/rows/batch-plan.ts";
import type { ThresholdReached } from "../../../../../src/plugin/store/limit.ts";
import type { RunSql } from "../../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { BudgetLeases } from "../../../../../plugins/stores/postgres/leases/budget-leases.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

const MAX = 1_000_000n;
const ID = "nano_usd|total|0|account:all";
const sum = (of: Partial<MeterDelta> = {}): MeterDelta => ({
  id: ID,
  max: MAX,
  period: 0,
  idle: 0,
  take: 0n,
  released: 0n,
  used: 0n,
  required: null,
  running: 0n,
  calls: 1,
  ...of,
});
const takes = (amount: bigint, max: bigint | null = MAX) =>
  sum({ take: amount, required: amount, running: amount, max });

describe.skipIf(!hasPostgres())("the budget leases of a gateway", () => {
  let server: Postgres;
  let by: ReturnType<typeof askAt>;
  let url: string;
  let slices: BudgetLeases;
  let crossed: string[];
  const ask: RunSql = (question) => by.question(question);
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
    by = askAt(url);
  });
  afterAll(async () => {
    await by?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  /** Others hold 300 of the budget, 50 are spent, and a thousand of the rest are this gateway's. */
  beforeEach(async () => {
    const made = await makePostgres(url);
    await made.store.open({ instance: "makes the tables" });
    await made.dispose();
    await insertNode(ask, "tollgate", "one", undefined, 60_000);
    await by.ask(
      `INSERT INTO tollgate.meter (id, level, reserved, max) VALUES ('${ID}', 50, 300, ${MAX})`,
    );
    crossed = [];
    const said = (all: readonly ThresholdReached[]) =>
      void crossed.push(...all.map(({ scope }) => scope));
    slices = new BudgetLeases({
      schema: "tollgate",
      offline: undefined,
      threshold: 1,
      onThresholdsReached: said,
    });
    slices.recordUse([sum({ take: 1_000n, calls: 20 })]);
    await slices.maintain(ask, "one", 1);
    expect(slices.leasedAmount(ID)).toBe(1_000n);
  });
  const fits = (of: MeterDelta, made = 1) => (slices.split([of], made)?.leased.length ?? 0) > 0;

  it("admit what fits: no more than exists, at any point of a batch, and under no lower limit", () => {
    expect(fits(takes(1_000n))).toBe(true);
    expect(fits(takes(1_001n))).toBe(false);
    expect(fits(sum({ take: 1_200n, running: 900n, required: 1_001n }))).toBe(false);
    expect(fits(sum({ take: 1_200n, running: 1_001n, required: 900n }))).toBe(false);
    expect(fits(takes(10n, MAX - 1n))).toBe(false);
    expect(fits(takes(10n, MAX + 1n))).toBe(true);
    // A returned amount has no limit of its own.
    expect(fits(sum({ max: null, running: -5n }))).toBe(true);
    expect(slices.split([sum({ id: "nano_usd|total|0|account:other" })], 1)).toBeUndefined();
    expect(fits(takes(10n), 2)).toBe(false);
  });

  it("are reduced while a batch is in progress, and restored if it failed", () => {
    const happened = slices.reserve([takes(600n)]);
    expect(fits(takes(401n))).toBe(false);
    expect(fits(takes(400n))).toBe(true);
    happened(false);
    expect(slices.leasedAmount(ID)).toBe(1_000n);
    slices.reserve([takes(600n)])(true);
    expect(slices.leasedAmount(ID)).toBe(400n);
    const given = slices.reserve([sum({ max: null, released: 600n, used: 100n, running: -500n })]);
    // A returned amount is available when that is known.
    expect(slices.leasedAmount(ID)).toBe(400n);
    given(true);
    expect(slices.leasedAmount(ID)).toBe(900n);
  });

  it("report what others hold and all have spent; their own rest counts as remaining", () => {
    expect(slices.meterState(ID)).toBe(`50 300 0 ${MAX} ${50n + MAX}`);
    slices.reserve([takes(600n)])(true);
    expect(slices.meterState(ID)).toBe(`50 900 0 ${MAX} ${50n + MAX}`);
    slices.reserve([sum({ max: null, released: 600n, used: 100n, running: -500n })])(true);
    expect(slices.meterState(ID)).toBe(`150 300 0 ${MAX} ${150n + MAX}`);
  });

  it("are read again after a reconnect to a database that may have been set back", async () => {
    const apart = { maxMs: 60_000, share: 0.1 };
    const standing = new BudgetLeases({
      schema: "tollgate",
      offline: apart,
      threshold: 0,
      onThresholdsReached() {},
    });
    standing.recordUse([takes(1n)]);
    await standing.maintain(ask, "two", 1);
    expect(standing.leasedAmount(ID)).toBeGreaterThan(90_000n);
    await by.ask("UPDATE tollgate.budget_lease SET amount = 40 WHERE node = 'two'");
    await standing.maintain(ask, "two", 2);
    expect(standing.leasedAmount(ID)).toBe(40n);
    await by.ask("DELETE FROM tollgate.budget_lease");
    await standing.maintain(ask, "two", 3);
    expect(standing.leasedAmount(ID)).toBeUndefined();
    await slices.maintain(ask, "one", 2);
    expect(fits(takes(1_001n), 2)).toBe(false);
  });

  it("exist only for budgets that many calls use, and not for rate limits", async () => {
    const rate = "nano_usd|minute|0|account:all";
    const fresh = new BudgetLeases({
      schema: "tollgate",
      offline: undefined,
      threshold: 1,
      onThresholdsReached() {},
    });
    fresh.recordUse([
      sum({ id: rate, period: 60_000, take: 1_000n, calls: 50 }),
      sum({ take: 100n, calls: 5 }),
    ]);
    await fresh.maintain(ask, "two", 1);
    expect(fresh.hasAny).toBe(false);
    expect(await by.ask("SELECT 1 FROM tollgate.lease_use WHERE node = 'two'")).toEqual([]);
  });

  it("report their spending, also if few calls arrive", async () => {
    for (let i = 0; i < 8; i++) await slices.maintain(ask, "one", 1);
    slices.reserve([sum({ take: 100n, running: 100n, required: 100n, used: 100n })])(true);
    await by.ask("UPDATE tollgate.budget_lease SET amount = amount - 100, spent = 100");
    await slices.maintain(ask, "one", 1);
    expect(await by.ask(`SELECT level FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { level: "150" },
    ]);
    expect(slices.hasAny).toBe(true);
  });

  it("report reached thresholds after the meter has recorded the spending", async () => {
    slices.reserve([sum({ take: 100n, running: 100n, required: 100n, used: 100n })])(true);
    await by.ask("UPDATE tollgate.budget_lease SET amount = 0, spent = 999000");
    expect(crossed).toEqual([]);
    await slices.maintain(ask, "one", 1);
    expect(crossed).toContain("account:all");
  });

  it("are returned if their limit was lowered, however many calls use them", async () => {
    slices.recordUse([sum({ take: 1_000n, calls: 20, max: MAX / 2n })]);
    await slices.maintain(ask, "one", 1);
    expect(slices.hasAny).toBe(false);
    expect(await by.ask(`SELECT reserved FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { reserved: "300" },
    ]);
  });

  it("are returned for a rejected client, and those of others are recalled", async () => {
    expect(await slices.onDenied(ask, "one", [ID])).toBe("own");
    expect(await by.ask("SELECT 1 FROM tollgate.budget_lease")).toEqual([]);
    expect(await by.ask(`SELECT reserved FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { reserved: "300" },
    ]);
    const other = "nano_usd|total|0|account:others";
    await by.ask(
      `INSERT INTO tollgate.budget_lease (meter, node, amount, is_offline) VALUES ('${other}', 'two', 5, false)`,
    );
    const fresh = new BudgetLeases({
      schema: "tollgate",
      offline: undefined,
      threshold: 1,
      onThresholdsReached() {},
    });
    expect(await fresh.onDenied(ask, "one", [other])).toBe("others");
    expect(await fresh.onDenied(ask, "one", [ID])).toBeUndefined();
    expect(await by.ask("SELECT meter FROM tollgate.lease_recall ORDER BY meter")).toEqual([
      { meter: ID },
      { meter: other },
    ]);
  });

  it("are not taken of a budget that was just recalled", async () => {
    await slices.onDenied(ask, "one", [ID]);
    const again = new BudgetLeases({
      schema: "tollgate",
      offline: undefined,
      threshold: 1,
      onThresholdsReached() {},
    });
    again.recordUse([sum({ take: 1_000n, calls: 20 })]);
    await again.maintain(ask, "one", 1);
    expect(again.hasAny).toBe(false);
    expect(await by.ask("SELECT 1 FROM tollgate.budget_lease")).toEqual([]);
  });

  it("are returned when no call uses them any more", async () => {
    for (let i = 0; i < 60 && slices.hasAny; i++) await slices.maintain(ask, "one", 1);
    expect(slices.hasAny).toBe(false);
    expect(await by.ask(`SELECT reserved FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { reserved: "300" },
    ]);
  });
});
