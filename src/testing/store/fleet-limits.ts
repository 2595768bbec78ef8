// A limit is one number for all instances: budgets overrun by several of them are where money is lost.
import assert from "node:assert/strict";
import { wallClock } from "../../lib/wall-clock.ts";
import { random } from "../random.ts";
import {
  attempts,
  claim,
  counted,
  fits,
  listedWhole,
  pay,
  take,
  together,
  type FleetClaim,
  type FleetLaw,
} from "./fleet.ts";

/** One of them: of 500 requests it gets every third. */
const share = <T>(of: readonly T[], i: number, parts: number): T[] =>
  of.filter((_, n) => n % parts === i);

/** What a limit is to a fleet. */
export const fleetLimits: readonly FleetLaw[] = [
  [
    "of 500 calls at once on a budget of 50 exactly 50 are let through, and no meter has a trace of the others",
    async (all) => {
      const wide = claim("team:t", 10n ** 12n, 1_000n);
      const day = claim("key:k", 10n ** 9n, 1n, { unit: "requests", per: "day" });
      for (const round of [1, 2, 3]) {
        const budget = claim(`key:${round}`, 50_000n, 1_000n);
        const names = attempts(500, `r${round}.`);
        const verdicts = await together(all, (one, i) =>
          one.tell(
            share(names, i, all.length).map((name) => take(name, [budget, wide, day])),
            1 + ((i * 37 + round * 13) % 90),
          ),
        );
        assert.equal(fits(verdicts.flat()), 50);
        for (const { store } of all) {
          const told = await counted(store, budget);
          if (told) assert.deepEqual(told, [0n, 50_000n]);
          const shared = await counted(store, wide);
          if (shared) assert.deepEqual(shared, [0n, 50_000n * BigInt(round)]);
        }
      }
      const rows = await listedWhole(all[0].store, 150);
      assert.ok(rows.every(({ kind }) => kind === "reserve"));
    },
  ],

  [
    "what is given back at one instance may be taken at another, to the last nano-dollar",
    async (all) => {
      const budget = claim("key:k", 10_000n, 1_000n);
      const [one, other] = [all[0], all.at(-1)!];
      assert.equal(fits(await one.tell(attempts(12).map((name) => take(name, [budget])))), 10);
      assert.equal(fits(await other.tell([take("no", [budget])])), 0);
      await one.tell(attempts(10).map((name) => pay(name, 1n)));
      assert.equal(fits(await other.tell([take("all", [{ ...budget, take: 9_991n }])])), 0);
      assert.equal(fits(await other.tell([take("all", [{ ...budget, take: 9_990n }])])), 1);
      const told = await counted(one.store, budget);
      if (told) assert.deepEqual(told, [10n, 9_990n]);
    },
  ],

  [
    "a lease of concurrent calls is one for all, and free when they end",
    async (all) => {
      const lease = claim("key:k", 0n, 1n, { unit: "concurrent", max: 7, per: "open" });
      const verdicts = await together(all, (one, i) =>
        one.tell(
          attempts(10, `c${i}.`).map((name) => take(name, [lease])),
          1 + i,
        ),
      );
      assert.equal(fits(verdicts.flat()), 7);
      const open = verdicts.flatMap((of, i) =>
        of.flatMap(({ ok }, n) => (ok ? [`c${i}.${n}`] : [])),
      );
      await all.at(-1)!.tell(open.map((name) => pay(name, 1n)));
      assert.equal(fits(await all[0].tell(attempts(9, "d").map((name) => take(name, [lease])))), 7);
    },
  ],

  [
    "a clock that is an hour off at one instance moves no limit",
    async (all, { ownClock }) => {
      if (!ownClock || all.length < 2) return;
      const rate = claim("key:k", 0n, 1n, { unit: "requests", max: 60, per: "minute" });
      const hour = 3_600_000;
      let let_through = 0;
      for (let i = 0; i < 12; i++) {
        const one = all[i % all.length]!;
        const at = wallClock() + [0, hour, -hour][i % 3]!;
        const commands = attempts(20, `k${i}.`).map((name) => ({ ...take(name, [rate]), at }));
        const verdicts = await one.tell(commands);
        let_through += fits(verdicts);
        const done = commands.filter((_, n) => verdicts[n]!.ok);
        await one.tell(done.map(({ attempt }) => ({ ...pay(attempt, 1n), at })));
      }
      // It drains one a second while the law runs.
      assert.ok(let_through >= 60 && let_through <= 66, `${let_through} of 60 were let through`);
    },
  ],

  [
    "random batches told in turn by all instances come to what one pair of hands would have let through",
    async (all) => {
      const next = random(7);
      const below = (n: number) => Math.floor(next() * n);
      const budgets = [
        claim("key:a", 20_000n, 0n),
        claim("key:b", 7_000n, 0n, { per: "month" }),
        claim("team:t", 22_000n, 0n),
        claim("key:a", 0n, 0n, { unit: "concurrent", max: 9, per: "open" }),
      ];
      const model = new Budgets();
      const open: string[] = [];
      for (let i = 0; i < 40; i++) {
        const batch = Array.from({ length: 1 + below(12) }, (_, n) => {
          if (open.length > 0 && next() < 0.4)
            return pay(open.splice(below(open.length), 1)[0]!, BigInt(below(1_500)));
          const name = `m${i}.${n}`;
          const claims = budgets
            .filter(() => next() < 0.6)
            .map((each): FleetClaim => ({
              ...each,
              take: each.per === "open" ? 1n : BigInt(below(1_000)),
            }));
          return take(name, claims);
        });
        const said = batch.map((command) => model.apply(command));
        const told = await all[i % all.length]!.tell(batch, 1_000);
        assert.deepEqual(
          told.map(({ ok }) => ok),
          said,
          `batch ${i}`,
        );
        batch.forEach((command, n) => {
          if (command.do === "reserve" && said[n]) open.push(command.attempt);
        });
      }
      for (const each of budgets)
        for (const { store } of all) {
          const there = await counted(store, each);
          if (there) assert.deepEqual(there, model.counted(each), each.scope);
        }
    },
  ],
];

/** Budgets and leases by hand: sums, and whether one more fits. */
class Budgets {
  readonly #sums = new Map<string, { used: bigint; held: bigint }>();
  readonly #open = new Map<string, readonly FleetClaim[]>();

  apply(command: ReturnType<typeof take> | ReturnType<typeof pay>): boolean {
    if (command.do === "settle") {
      for (const each of this.#open.get(command.attempt) ?? []) {
        const sum = this.#sum(each);
        sum.held -= each.take;
        if (each.per !== "open") sum.used += command.costNano ?? 0n;
      }
      this.#open.delete(command.attempt);
      return true;
    }
    const over = (each: FleetClaim) => {
      const { used, held } = this.#sum(each);
      return each.take > 0n && used + held + each.take > BigInt(each.max);
    };
    if (command.claims.some(over)) return false;
    for (const each of command.claims) this.#sum(each).held += each.take;
    this.#open.set(command.attempt, command.claims);
    return true;
  }

  counted(of: FleetClaim): readonly bigint[] {
    const { used, held } = this.#sum(of);
    return [used, held];
  }

  #sum({ scope, unit, per }: FleetClaim) {
    const name = `${scope} ${unit} ${per}`;
    const sum = this.#sums.get(name) ?? { used: 0n, held: 0n };
    this.#sums.set(name, sum);
    return sum;
  }
}
