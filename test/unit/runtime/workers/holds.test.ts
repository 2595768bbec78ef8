// After a worker dies, its holds leave the same rows as a restart would, or better ones.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { trackReservations } from "../../../../src/runtime/workers/open-reservations.ts";
import type { StoreCommand, LedgerEntry } from "../../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { makeMemory } from "../../../plugins/stores/stores-under-test.ts";
import { trialCount } from "../../../kit/law-effort.ts";

const LATER = NOON + 5_000;

const command = (name: string): fc.Arbitrary<StoreCommand> =>
  fc.oneof(
    fc
      .record({
        at: fc.integer({ min: NOON, max: NOON + 9_000 }),
        hold: fc.option(fc.bigInt(0n, 9n)),
      })
      .map(({ at, hold }) => reserveCommand(name, { at, holdNano: hold })),
    fc
      .record({ output: fc.nat(9), cost: fc.option(fc.bigInt(0n, 9n)) })
      .map(({ output, cost }): StoreCommand => ({
        do: "progress",
        at: NOON,
        attempt: name,
        usage: { output },
        costNano: cost,
      })),
    fc.constant(settleCommand(name)),
  );

const plain = (rows: readonly LedgerEntry[]) =>
  rows
    .filter(({ kind }) => kind === "settle")
    .map(({ attempt, state, usage, costNano, outcome }) => ({
      attempt,
      state,
      usage,
      costNano,
      outcome,
    }))
    .toSorted((a, b) => (a.attempt < b.attempt ? -1 : 1));

it("a reservation is settled as in recovery", async () => {
  const batches = fc.array(
    fc.array(fc.constantFrom("a", "b", "c").chain(command), { maxLength: 3 }),
  );
  await fc.assert(
    fc.asyncProperty(batches, async (sent) => {
      const [mine, theirs] = [await makeMemory(), await makeMemory()];
      for (const { store } of [mine, theirs]) await store.open({ instance: "one" });
      const holds = trackReservations((batch) => mine.store.apply(batch));
      for (const batch of sent)
        for (const apply of [holds.apply, theirs.store.apply])
          await apply(batch).catch(() => "a settle without its reserve");
      const left = await holds.settleAll(LATER);
      expect(left).toHaveLength(holds.size);
      // A clock that advances between calls would drain rates by time that has not passed.
      expect(new Set(left.map(({ at }) => at)).size).toBeLessThanOrEqual(1);
      await mine.store.apply(left);
      await theirs.store.open({ instance: "two" });
      const [ours, recovered] = await Promise.all(
        [mine, theirs].map(async ({ store }) => plain((await store.listEntries({})).items)),
      );
      expect(ours).toEqual(recovered);
    }),
    { numRuns: trialCount(200) },
  );
});

it("a reserve that is written after its worker died was never sent: it costs nothing", async () => {
  const { store } = await makeMemory();
  await store.open({ instance: "one" });
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const holds = trackReservations(async (batch) => {
    await gate;
    return store.apply(batch);
  });
  const asked = holds.apply([reserveCommand("late")]);
  const left = holds.settleAll(LATER);
  open();
  await asked;
  expect(await left).toMatchObject([
    { attempt: "late", state: "void", costNano: 0n, outcome: "abandoned" },
  ]);
});

it("a job outlives the worker that created it, but its open lines do not", async () => {
  const { store } = await makeMemory();
  await store.open({ instance: "one" });
  const holds = trackReservations((batch) => store.apply(batch));
  await holds.apply([
    reserveCommand("job", { job: { attempt: "job" } }),
    reserveCommand("line", { job: { attempt: "job", take: { requests: 1n } } }),
  ]);
  expect(await holds.settleAll(LATER)).toMatchObject([{ attempt: "line", state: "estimated" }]);
});
