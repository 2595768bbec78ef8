// What one gateway knows of its slices, on a real database: which calls are counted in them, and what is there when it is not known whether something happened.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { join } from "../../../plugins/stores/postgres/beat.ts";
import type { Sum } from "../../../plugins/stores/postgres/calls.ts";
import type { LimitCrossing } from "../../../src/plugin/limit.ts";
import type { Ask } from "../../../plugins/stores/postgres/line.ts";
import { Slices } from "../../../plugins/stores/postgres/slices.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/postgres.ts";
import { askAt, makePostgres } from "./made-postgres.ts";

const MAX = 1_000_000n;
const ID = "nano_usd|total|0|account:all";
const sum = (of: Partial<Sum> = {}): Sum => ({
  id: ID,
  max: MAX,
  period: 0,
  take: 0n,
  unhold: 0n,
  used: 0n,
  need: null,
  run: 0n,
  times: 1,
  ...of,
});
const takes = (amount: bigint, max: bigint | null = MAX) =>
  sum({ take: amount, need: amount, run: amount, max });

describe.skipIf(!hasPostgres())("the slices of a gateway", () => {
  let server: Postgres;
  let by: ReturnType<typeof askAt>;
  let url: string;
  let slices: Slices;
  let crossed: string[];
  const ask: Ask = (question) => by.question(question);
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
    await made.end();
    await join(ask, "tollgate", "one", undefined, 60_000);
    await by.ask(
      `INSERT INTO tollgate.meter (id, level, held, max) VALUES ('${ID}', 50, 300, ${MAX})`,
    );
    crossed = [];
    const said = (all: readonly LimitCrossing[]) =>
      void crossed.push(...all.map(({ scope }) => scope));
    slices = new Slices({ schema: "tollgate", apart: undefined, from: 1, crossed: said });
    slices.touch([sum({ take: 1_000n, times: 20 })]);
    await slices.tend(ask, "one", 1);
    expect(slices.part(ID)).toBe(1_000n);
  });
  const fits = (of: Sum, made = 1) => (slices.split([of], made)?.sliced.length ?? 0) > 0;

  it("count what fits: no more than there is, at no point of a batch, and under no lower limit", () => {
    expect(fits(takes(1_000n))).toBe(true);
    expect(fits(takes(1_001n))).toBe(false);
    expect(fits(sum({ take: 1_200n, run: 900n, need: 1_001n }))).toBe(false);
    expect(fits(sum({ take: 1_200n, run: 1_001n, need: 900n }))).toBe(false);
    expect(fits(takes(10n, MAX - 1n))).toBe(false);
    expect(fits(takes(10n, MAX + 1n))).toBe(true);
    // What a call gives back has no limit of its own.
    expect(fits(sum({ max: null, run: -5n }))).toBe(true);
    expect(slices.split([sum({ id: "nano_usd|total|0|account:other" })], 1)).toBeUndefined();
    expect(fits(takes(10n), 2)).toBe(false);
  });

  it("while a batch is under way what it takes is no other's; when it failed it is there again", () => {
    const happened = slices.send([takes(600n)]);
    expect(fits(takes(401n))).toBe(false);
    expect(fits(takes(400n))).toBe(true);
    happened(false);
    expect(slices.part(ID)).toBe(1_000n);
    slices.send([takes(600n)])(true);
    expect(slices.part(ID)).toBe(400n);
    const given = slices.send([sum({ max: null, unhold: 600n, used: 100n, run: -500n })]);
    // What is given back is there once that is known.
    expect(slices.part(ID)).toBe(400n);
    given(true);
    expect(slices.part(ID)).toBe(900n);
  });

  it("say of the budget what others hold and all have spent; their own is room", () => {
    expect(slices.state(ID)).toBe(`50 300 0 ${MAX} ${50n + MAX}`);
    slices.send([takes(600n)])(true);
    expect(slices.state(ID)).toBe(`50 900 0 ${MAX} ${50n + MAX}`);
    slices.send([sum({ max: null, unhold: 600n, used: 100n, run: -500n })])(true);
    expect(slices.state(ID)).toBe(`150 300 0 ${MAX} ${150n + MAX}`);
  });

  it("are read anew where another connection may lead to a database that was set back", async () => {
    const apart = { forMs: 60_000, share: 0.1 };
    const standing = new Slices({ schema: "tollgate", apart, from: 0, crossed() {} });
    standing.touch([takes(1n)]);
    await standing.tend(ask, "two", 1);
    expect(standing.part(ID)).toBeGreaterThan(90_000n);
    await by.ask("UPDATE tollgate.slice SET amount = 40 WHERE node = 'two'");
    await standing.tend(ask, "two", 2);
    expect(standing.part(ID)).toBe(40n);
    await by.ask("DELETE FROM tollgate.slice");
    await standing.tend(ask, "two", 3);
    expect(standing.part(ID)).toBeUndefined();
    await slices.tend(ask, "one", 2);
    expect(fits(takes(1_001n), 2)).toBe(false);
  });

  it("are of budgets alone that many calls draw on, and of no rate", async () => {
    const rate = "nano_usd|minute|0|account:all";
    const fresh = new Slices({ schema: "tollgate", apart: undefined, from: 1, crossed() {} });
    fresh.touch([
      sum({ id: rate, period: 60_000, take: 1_000n, times: 50 }),
      sum({ take: 100n, times: 5 }),
    ]);
    await fresh.tend(ask, "two", 1);
    expect(fresh.any).toBe(false);
    expect(await by.ask("SELECT 1 FROM tollgate.touch WHERE node = 'two'")).toEqual([]);
  });

  it("tell what they have spent, also when fewer calls come than make a budget hot", async () => {
    for (let i = 0; i < 8; i++) await slices.tend(ask, "one", 1);
    slices.send([sum({ take: 100n, run: 100n, need: 100n, used: 100n })])(true);
    await by.ask("UPDATE tollgate.slice SET amount = amount - 100, spent = 100");
    await slices.tend(ask, "one", 1);
    expect(await by.ask(`SELECT level FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { level: "150" },
    ]);
    expect(slices.any).toBe(true);
  });

  it("say what is crossed by what they have spent, once the meter has heard of it", async () => {
    slices.send([sum({ take: 100n, run: 100n, need: 100n, used: 100n })])(true);
    await by.ask("UPDATE tollgate.slice SET amount = 0, spent = 999000");
    expect(crossed).toEqual([]);
    await slices.tend(ask, "one", 1);
    expect(crossed).toContain("account:all");
  });

  it("go back when their limit is a lower one, however many calls draw on them", async () => {
    slices.touch([sum({ take: 1_000n, times: 20, max: MAX / 2n })]);
    await slices.tend(ask, "one", 1);
    expect(slices.any).toBe(false);
    expect(await by.ask(`SELECT held FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { held: "300" },
    ]);
  });

  it("go back to a client that was refused, and others are asked for theirs", async () => {
    expect(await slices.ease(ask, "one", [ID])).toBe("own");
    expect(await by.ask("SELECT 1 FROM tollgate.slice")).toEqual([]);
    expect(await by.ask(`SELECT held FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { held: "300" },
    ]);
    const other = "nano_usd|total|0|account:others";
    await by.ask(
      `INSERT INTO tollgate.slice (meter, node, amount, apart) VALUES ('${other}', 'two', 5, false)`,
    );
    const fresh = new Slices({ schema: "tollgate", apart: undefined, from: 1, crossed() {} });
    expect(await fresh.ease(ask, "one", [other])).toBe("others");
    expect(await fresh.ease(ask, "one", [ID])).toBeUndefined();
    expect(await by.ask("SELECT meter FROM tollgate.recall ORDER BY meter")).toEqual([
      { meter: ID },
      { meter: other },
    ]);
  });

  it("are not taken of a budget that was just asked back", async () => {
    await slices.ease(ask, "one", [ID]);
    const again = new Slices({ schema: "tollgate", apart: undefined, from: 1, crossed() {} });
    again.touch([sum({ take: 1_000n, times: 20 })]);
    await again.tend(ask, "one", 1);
    expect(again.any).toBe(false);
    expect(await by.ask("SELECT 1 FROM tollgate.slice")).toEqual([]);
  });

  it("go back when no call draws on them any more", async () => {
    for (let i = 0; i < 60 && slices.any; i++) await slices.tend(ask, "one", 1);
    expect(slices.any).toBe(false);
    expect(await by.ask(`SELECT held FROM tollgate.meter WHERE id = '${ID}'`)).toEqual([
      { held: "300" },
    ]);
  });
});
