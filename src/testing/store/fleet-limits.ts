// Checks that a limit has one count for all instances. If several instances overrun a budget, money
// is lost.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { createSeededRandom } from "../random.ts";
import {
  attemptIds,
  fleetClaim,
  readLimitUsage,
  countAllowed,
  listEntriesUntil,
  settleNow,
  reserveNow,
  onAll,
  type FleetClaim,
  type FleetLaw,
} from "./fleet.ts";

/** Returns the requests of one instance. With three instances, it receives every third request. */
const everyNth = <T>(of: readonly T[], i: number, parts: number): T[] =>
  of.filter((_, n) => n % parts === i);

/** Checks of limits that a fleet shares. */
export const fleetLimitLaws: readonly FleetLaw[] = [
  [
    "of 500 concurrent calls on a budget for 50 exactly 50 are admitted, and denials " +
      "change no meter",
    async (all) => {
      const wide = fleetClaim("team:t", 10n ** 12n, 1_000n);
      const day = fleetClaim("key:k", 10n ** 9n, 1n, { unit: "requests", per: "day" });
      for (const round of [1, 2, 3]) {
        const budget = fleetClaim(`key:${round}`, 50_000n, 1_000n);
        const names = attemptIds(500, `r${round}.`);
        const verdicts = await onAll(all, (one, i) =>
          one.apply(
            everyNth(names, i, all.length).map((name) => reserveNow(name, [budget, wide, day])),
            1 + ((i * 37 + round * 13) % 90),
          ),
        );
        assert.equal(countAllowed(verdicts.flat()), 50);
        for (const { store } of all) {
          const usage = await readLimitUsage(store, budget);
          if (usage) assert.deepEqual(usage, [0n, 50_000n]);
          const shared = await readLimitUsage(store, wide);
          if (shared) assert.deepEqual(shared, [0n, 50_000n * BigInt(round)]);
        }
      }
      const rows = await listEntriesUntil(all[0].store, 150);
      assert.ok(rows.every(({ kind }) => kind === "reserve"));
    },
  ],

  [
    "an amount that one instance releases is available to others, to the last nano-dollar",
    async (all) => {
      const budget = fleetClaim("key:k", 10_000n, 1_000n);
      const [one, other] = [all[0], all.at(-1)!];
      assert.equal(
        countAllowed(await one.apply(attemptIds(12).map((name) => reserveNow(name, [budget])))),
        10,
      );
      assert.equal(countAllowed(await other.apply([reserveNow("no", [budget])])), 0);
      await one.apply(attemptIds(10).map((name) => settleNow(name, 1n)));
      assert.equal(
        countAllowed(await other.apply([reserveNow("all", [{ ...budget, take: 9_991n }])])),
        0,
      );
      assert.equal(
        countAllowed(await other.apply([reserveNow("all", [{ ...budget, take: 9_990n }])])),
        1,
      );
      const usage = await readLimitUsage(one.store, budget);
      if (usage) assert.deepEqual(usage, [10n, 9_990n]);
    },
  ],

  [
    "a concurrency lease is shared by all instances and released when its calls end",
    async (all) => {
      const lease = fleetClaim("key:k", 0n, 1n, { unit: "concurrent", max: 7, per: "open" });
      const verdicts = await onAll(all, (one, i) =>
        one.apply(
          attemptIds(10, `c${i}.`).map((name) => reserveNow(name, [lease])),
          1 + i,
        ),
      );
      assert.equal(countAllowed(verdicts.flat()), 7);
      const open = verdicts.flatMap((of, i) =>
        of.flatMap(({ ok }, n) => (ok ? [`c${i}.${n}`] : [])),
      );
      await all.at(-1)!.apply(open.map((name) => settleNow(name, 1n)));
      assert.equal(
        countAllowed(
          await all[0].apply(attemptIds(9, "d").map((name) => reserveNow(name, [lease]))),
        ),
        7,
      );
    },
  ],

  [
    "a clock that is wrong by an hour at one instance changes no limit",
    async (all, { usesOwnClock }) => {
      if (!usesOwnClock || all.length < 2) return;
      const rate = fleetClaim("key:k", 0n, 1n, { unit: "requests", max: 60, per: "minute" });
      const hour = 3_600_000;
      let let_through = 0;
      for (let i = 0; i < 12; i++) {
        const one = all[i % all.length]!;
        const at = wallClock() + [0, hour, -hour][i % 3]!;
        const commands = attemptIds(20, `k${i}.`).map((name) => ({
          ...reserveNow(name, [rate]),
          at,
        }));
        const verdicts = await one.apply(commands);
        let_through += countAllowed(verdicts);
        const done = commands.filter((_, n) => verdicts[n]!.ok);
        await one.apply(done.map(({ attempt }) => ({ ...settleNow(attempt, 1n), at })));
      }
      // The rate drains by one request per second while the check runs.
      assert.ok(let_through >= 60 && let_through <= 66, `${let_through} of 60 calls were admitted`);
    },
  ],

  [
    "random batches from alternating instances give the same result as from one instance",
    async (all) => {
      const next = createSeededRandom(7);
      const below = (n: number) => Math.floor(next() * n);
      const budgets = [
        fleetClaim("key:a", 20_000n, 0n),
        fleetClaim("key:b", 7_000n, 0n, { per: "month" }),
        fleetClaim("team:t", 22_000n, 0n),
        fleetClaim("key:a", 0n, 0n, { unit: "concurrent", max: 9, per: "open" }),
      ];
      const model = new ReferenceBudgets();
      const open: string[] = [];
      for (let i = 0; i < 40; i++) {
        const batch = Array.from({ length: 1 + below(12) }, (_, n) => {
          if (open.length > 0 && next() < 0.4)
            return settleNow(open.splice(below(open.length), 1)[0]!, BigInt(below(1_500)));
          const name = `m${i}.${n}`;
          const claims = budgets
            .filter(() => next() < 0.6)
            .map((each): FleetClaim => ({
              ...each,
              take: each.per === "open" ? 1n : BigInt(below(1_000)),
            }));
          return reserveNow(name, claims);
        });
        const expected = batch.map((command) => model.apply(command));
        const results = await all[i % all.length]!.apply(batch, 1_000);
        assert.deepEqual(
          results.map(({ ok }) => ok),
          expected,
          `batch ${i}`,
        );
        batch.forEach((command, n) => {
          if (command.do === "reserve" && expected[n]) open.push(command.attempt);
        });
      }
      for (const each of budgets)
        for (const { store } of all) {
          const there = await readLimitUsage(store, each);
          if (there) assert.deepEqual(there, model.counted(each), each.scope);
        }
    },
  ],
];

/** Reference model of budgets and reservations. It computes sums and whether one more call fits. */
class ReferenceBudgets {
  readonly #totals = new Map<string, { used: bigint; held: bigint }>();
  readonly #open = new Map<string, readonly FleetClaim[]>();

  apply(command: ReturnType<typeof reserveNow> | ReturnType<typeof settleNow>): boolean {
    if (command.do === "settle") {
      for (const each of this.#open.get(command.attempt) ?? []) {
        const sum = this.#totalFor(each);
        sum.held -= each.take;
        if (each.per !== "open") sum.used += command.costNano ?? 0n;
      }
      this.#open.delete(command.attempt);
      return true;
    }
    const over = (each: FleetClaim) => {
      const { used, held } = this.#totalFor(each);
      return each.take > 0n && used + held + each.take > BigInt(each.max);
    };
    if (command.claims.some(over)) return false;
    for (const each of command.claims) this.#totalFor(each).held += each.take;
    this.#open.set(command.attempt, command.claims);
    return true;
  }

  counted(of: FleetClaim): readonly bigint[] {
    const { used, held } = this.#totalFor(of);
    return [used, held];
  }

  #totalFor({ scope, unit, per }: FleetClaim) {
    const name = `${scope} ${unit} ${per}`;
    const sum = this.#totals.get(name) ?? { used: 0n, held: 0n };
    this.#totals.set(name, sum);
    return sum;
  }
}
