// Calls on a spent budget at a high rate: about four queries per second are sent to the database,
// and none is rejected for longer than a moment if budget is left.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store, CommandResult } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import { installTestClock } from "../../../../kit/clock.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

const CALLS = 100;
let n = 0;

describe.skipIf(!hasPostgres())("a spent budget under many requests", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["track_functions=pl"] });
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  /** Concurrent calls of `take` each: the number of admitted ones. */
  const passed = async (
    store: Store,
    { calls = CALLS, take = 10n, max = 100n, scope = "key:flooded" } = {},
  ): Promise<number> =>
    oks(await store.apply(Array.from({ length: calls }, () => call({ take, max, scope }))));
  const call = ({ take, max, scope }: { take: bigint; max: bigint; scope: string }) =>
    reserveCommand(`flood.${n++}`, {
      at: Date.now(),
      claims: [{ scope, unit: "nano_usd", max, per: "total", take }],
    });
  const oks = (verdicts: readonly CommandResult[]) => verdicts.filter(({ ok }) => ok).length;

  const scene = async () => {
    const made = await makePostgres(url, { clock: "database" });
    await made.store.open({ instance: "one" });
    return made;
  };

  it("is requested from the database a few times per second", async () => {
    const { store, dispose } = await scene();
    expect(await passed(store)).toBe(10);
    const time = installTestClock();
    time.stop();
    let refused = 0;
    for (let i = 0; i < 300; i++) {
      time.skip(5);
      expect(await passed(store)).toBe(0);
      refused += CALLS;
    }
    time.go();
    const seconds = 1.5;
    await dispose();
    await using by = askAt(url);
    const [row] = await by.ask(
      "SELECT sum(calls) AS many FROM pg_stat_user_functions WHERE funcname = 'apply_batch_1'",
    );
    // Including the first query.
    expect(Number(row!["many"])).toBeLessThanOrEqual(5 * seconds + 5);
    expect(refused).toBeGreaterThan(5_000);
  });

  it("admits what fits: a smaller call, another budget, a higher limit, and after one of its own calls ended", async () => {
    const time = installTestClock();
    const { store, dispose } = await scene();
    expect(await passed(store, { max: 105n })).toBe(10);
    expect(await passed(store, { max: 105n })).toBe(0);
    expect(await passed(store, { max: 105n, calls: 1, take: 5n })).toBe(1);
    expect(await passed(store, { max: 105n })).toBe(0);
    expect(await passed(store, { max: 105n, scope: "key:other", calls: 1 })).toBe(1);
    expect(await passed(store, { max: 115n })).toBe(1);
    expect(await passed(store, { max: 115n })).toBe(0);
    const mine = call({ take: 20n, max: 135n, scope: "key:flooded" });
    expect(oks(await store.apply([mine]))).toBe(1);
    expect(await passed(store, { max: 135n })).toBe(0);
    expect(await passed(store, { max: 135n })).toBe(0);
    // In one batch: its end comes first.
    const ends = settleCommand(mine.attempt, { at: Date.now(), costNano: 0n });
    const next = call({ take: 10n, max: 135n, scope: "key:flooded" });
    expect(oks(await store.apply([ends, next]))).toBe(2);
    expect(await passed(store, { max: 135n })).toBe(1);
    // After them it frees budget for the next batch.
    time.skip(260);
    const flood = Array.from({ length: CALLS }, () =>
      call({ take: 10n, max: 135n, scope: "key:flooded" }),
    );
    const last = settleCommand(next.attempt, { at: Date.now(), costNano: 0n });
    expect(oks(await store.apply([...flood, last]))).toBe(1);
    expect(await passed(store, { max: 135n })).toBe(1);
    await dispose();
  });

  it("admits calls soon after another gateway freed budget", async () => {
    const time = installTestClock();
    const { store, openAnother, dispose } = await scene();
    const other = await openAnother();
    await other.open({ instance: "other" });
    const theirs = call({ take: 10n, max: 100n, scope: "key:flooded" });
    expect(oks(await other.apply([theirs]))).toBe(1);
    expect(await passed(store)).toBe(9);
    expect(await passed(store)).toBe(0);
    await other.apply([settleCommand(theirs.attempt, { at: Date.now(), costNano: 0n })]);
    time.skip(260);
    expect(await passed(store)).toBe(1);
    await dispose();
  });

  it("states the wait for a larger call under a rate limit, and the longer one of two", async () => {
    const { store, dispose } = await scene();
    const rate = (take: bigint) =>
      ({ scope: "key:rated", unit: "tokens", max: 600n, per: "minute", take }) as const;
    const spent = { ...rate(1n), scope: "account:spent", per: "total", max: 0n } as const;
    const asked = async (claims: Parameters<typeof reserveCommand>[1] & object, calls = CALLS) => {
      const verdicts = await store.apply(
        Array.from({ length: calls }, () =>
          reserveCommand(`flood.${n++}`, { at: Date.now(), ...claims }),
        ),
      );
      return verdicts.filter((verdict) => !verdict.ok).at(-1)!;
    };
    await asked({ claims: [rate(10n)] });
    const some = await asked({ claims: [rate(10n)] });
    const more = await asked({ claims: [rate(500n)] }, 1);
    expect(some.retryAfterMs).toBeLessThanOrEqual(1_000);
    expect(more.retryAfterMs).toBeGreaterThan(20_000);
    await asked({ claims: [spent] });
    const both = await asked({ claims: [rate(10n), spent] });
    expect([both.denied.scope, both.retryAfterMs > 1_000]).toEqual(["account:spent", true]);
    await dispose();
  });

  it("is checked for each of few calls", async () => {
    const { store, openAnother, dispose } = await scene();
    const other = await openAnother();
    await other.open({ instance: "other" });
    const theirs = call({ take: 100n, max: 100n, scope: "key:calm" });
    expect(oks(await other.apply([theirs]))).toBe(1);
    expect(await passed(store, { calls: 3, scope: "key:calm" })).toBe(0);
    await other.apply([settleCommand(theirs.attempt, { at: Date.now(), costNano: 0n })]);
    expect(await passed(store, { calls: 3, scope: "key:calm" })).toBe(3);
    await dispose();
  });

  it("reports an admitted call whose response was lost as admitted", async () => {
    const { store, dispose } = await scene();
    const first = call({ take: 10n, max: 100n, scope: "key:flooded" });
    expect(oks(await store.apply([first]))).toBe(1);
    expect(await passed(store)).toBe(9);
    expect(await passed(store)).toBe(0);
    expect(oks(await store.apply([first]))).toBe(1);
    await dispose();
  });
});
