// Charges for observers equal the ledger: if batches are repeated, denied, or late, the sums are
// the same to the nano-dollar.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { ChargeRecord, StoreCommand } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import memory from "../../../plugins/stores/memory.ts";
import { ObserverHub } from "../../../src/runtime/observers/observer-hub.ts";
import { ReservedCalls } from "../../../src/runtime/observers/reserved-calls.ts";
import { withCommitReports } from "../../../src/runtime/services.ts";
import { ThresholdDelivery } from "../../../src/runtime/observers/threshold-delivery.ts";
import { DurationRecorder } from "../../../src/runtime/services/duration-histogram.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { trialCount } from "../../kit/law-effort.ts";

const log = { warn() {}, error() {} } as never;
const OWNER = { instance: "one" };

/** One call: the batches of its commands, and whether a batch's response is lost. */
const aCall = fc.record({
  model: fc.constantFrom("a", "b", "c"),
  cost: fc.option(fc.bigInt(0n, 10n ** 12n), { nil: null, freq: 6 }),
  state: fc.constantFrom("exact", "estimated", "void"),
  denied: fc.boolean(),
  corrections: fc.array(fc.bigInt(-(10n ** 6n), 10n ** 6n), { maxLength: 2 }),
  gap: fc.nat(2),
});

it("the sum of all records equals the ledger, by model, for any batches and lost responses", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aCall, { minLength: 1, maxLength: 25 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
      async (calls, lost) => {
        await using test = createTestContext({ id: "store" });
        const store = await memory.setup({ keep: 1_000 }, test.ctx);
        await store.open(OWNER);
        const lines: ChargeRecord[] = [];
        const audience = new ObserverHub(log);
        const one = {
          id: "observers.x",
          sends: "nowhere" as const,
          observer: { onCharges: (all: readonly ChargeRecord[]) => void lines.push(...all) },
        };
        audience.attach([one]);
        let turn = 0;
        const flaky = {
          async apply(batch: readonly StoreCommand[]) {
            const verdicts = await store.apply(batch);
            // It was committed, and the response was lost: the host sends the same batch again.
            if (lost[turn++ % lost.length] && turn % 2 === 1)
              throw new Error("The answer is lost.");
            return verdicts;
          },
        };
        const { apply } = withCommitReports(
          flaky,
          audience,
          new DurationRecorder(),
          new ThresholdDelivery({}, audience, log),
        );
        const rounds: StoreCommand[][] = [];
        const say = (round: number, command: StoreCommand) => (rounds[round] ??= []).push(command);
        calls.forEach(({ model, cost, state, denied, corrections, gap }, i) => {
          const attempt = `call-${i}`;
          const target = { provider: "p", model, protocol: null, credential: "k" };
          const claims = denied
            ? [{ scope: "none", unit: "requests", max: 0, per: "day", take: 1n } as const]
            : [];
          say(i % 4, reserveCommand(attempt, { target, claims, at: NOON + i }));
          if (denied) return;
          const costNano = state === "void" ? 0n : cost;
          const said = costNano === null && state === "exact" ? "unpriced" : state;
          const at = NOON + i + 1;
          say(
            (i % 4) + 1 + gap,
            settleCommand(attempt, { at, costNano, state: said as "exact", usage: { output: i } }),
          );
          corrections.forEach((nano, n) =>
            say((i % 4) + 2 + gap + n, {
              do: "adjust",
              at: NOON + 1_000 + n,
              attempt,
              costNano: nano,
              reason: `n${n}`,
              actor: "me",
            }),
          );
        });
        for (const batch of rounds) if (batch) await apply(batch).catch(() => apply(batch));
        await audience.detach([one]);

        // A void call is in no sum.
        const settled = lines.filter(({ type, state }) => type === "settle" && state !== "void");
        const told: Record<string, readonly [bigint, number, number]> = {};
        for (const { call, costNano, usage } of settled) {
          const [nano, many, output] = told[call!.target.model] ?? [0n, 0, 0];
          told[call!.target.model] = [
            nano + (costNano ?? 0n),
            many + 1,
            output + (usage.output ?? 0),
          ];
        }
        const corrected = lines.filter(({ type }) => type === "adjust");
        const totals = await store.sumEntries({ by: ["model"] });
        const all = totals.reduce((sum, { costNano }) => sum + costNano, 0n);
        const added = corrected.reduce((sum, { costNano }) => sum + costNano!, 0n);
        const nanos = Object.values(told).reduce((sum, [nano]) => sum + nano, 0n);
        expect(nanos + added).toBe(all);
        expect(settled).toHaveLength(totals.reduce((sum, { calls: many }) => sum + many, 0));
        for (const { by, calls: many, usage } of totals)
          expect(told[by["model"]!.slice(2)]?.slice(1) ?? [0, 0]).toEqual([
            many,
            usage.output ?? 0,
          ]);
      },
    ),
    { numRuns: trialCount(60) },
  );
});

it("records nothing without an observer, and a new observer receives calls that are settled from then on", async () => {
  const lines: ChargeRecord[] = [];
  const audience = new ObserverHub(log);
  const one = {
    id: "observers.x",
    sends: "nowhere" as const,
    observer: { onCharges: (all: readonly ChargeRecord[]) => void lines.push(...all) },
  };
  const batch = [reserveCommand("early", {}), reserveCommand("late", {})];
  audience.attach([]);
  audience.reportCommit(batch.slice(0, 1), [{ ok: true }]);
  audience.attach([one]);
  audience.reportCommit(batch.slice(1), [{ ok: true }]);
  audience.reportCommit(
    [settleCommand("early", {}), settleCommand("late", {})],
    [{ ok: true }, { ok: true }],
  );
  await audience.detach([one]);
  expect(lines.map(({ attempt, call }) => [attempt, call !== undefined])).toEqual([
    ["early", false],
    ["late", true],
  ]);
});

it("an observer that sends data elsewhere gets no labels of a private call", async () => {
  const lines: ChargeRecord[] = [];
  const audience = new ObserverHub(log);
  const one = {
    id: "observers.x",
    sends: { retention: { kind: "unknown" as const }, trains: "unknown" as const },
    observer: { onCharges: (all: readonly ChargeRecord[]) => void lines.push(...all) },
  };
  audience.attach([one]);
  const labels = { user: "ann" };
  audience.reportCommit(
    [
      reserveCommand("private", { privacy: "required", labels }),
      reserveCommand("plain", { labels }),
      settleCommand("private", {}),
      settleCommand("plain", {}),
    ],
    Array.from({ length: 4 }, () => ({ ok: true })),
  );
  await audience.detach([one]);
  expect(lines.map(({ call }) => call!.labels)).toEqual([{}, labels]);
});

it("keeps nothing of a denied call, which is never settled", () => {
  const calls = new ReservedCalls();
  const denied = { scope: "none", unit: "requests", max: 0, per: "day", remaining: 0, resetsAt: 1 };
  const lines: ChargeRecord[] = [];
  calls.add(
    lines,
    [reserveCommand("a")],
    [{ ok: false, denied: denied as never, retryAfterMs: 1 }],
  );
  calls.add(lines, [settleCommand("a")], [{ ok: true }]);
  expect([lines.length, lines[0]!.call]).toEqual([1, undefined]);
});
