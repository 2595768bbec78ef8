// `ledger: { retention }`: older rows become sums while the gateway serves.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { onFile } from "../../plugins/stores/stores-under-test.ts";

const YAML = "frontends: [chat-completions]\nproviders: { demo: { use: demo } }\n";

it("prunes old rows automatically and by command, and rejects an impossible retention", async () => {
  const first = await startInProcess({ yaml: YAML });
  onTestFinished(() => rm(first.dir, { recursive: true, force: true }));
  await first.stop();
  const made = await onFile(join(first.stateDir, "store/ledger.db"));
  await made.store.open({ instance: "filler" });
  const now = Date.now();
  const old = (days: number) => now - days * 86_400_000;
  for (const days of [400, 300, 40, 3])
    await made.store.apply([
      reserveCommand(`d${days}`, { at: old(days) }),
      settleCommand(`d${days}`, { at: old(days), costNano: 5n }),
    ]);
  await made.dispose();

  await using at = await startInProcess({
    yaml: `${YAML}ledger: { retention: 350d }`,
    dir: first.dir,
  });
  const state = async () =>
    (await at.ask("ledger.status")) as { prunedRows: number; oldest: number };
  await until(async () => (await state()).prunedRows === 2);
  const plan = await at.ask("ledger.prune", { before: old(30), dryRun: true });
  expect(plan).toMatchObject({ plan: { rows: 4 }, result: null });
  const archive = join(first.dir, "old.jsonl.gz");
  const done = await at.ask("ledger.prune", { before: old(30), archive });
  expect(done).toMatchObject({ result: { rows: 4, archive: { rows: 4 } } });
  expect((await state()).prunedRows).toBe(6);
  expect(await at.ask("ledger.totals", { by: ["day"] })).toMatchObject({
    total: { calls: 4, costNano: "20" },
  });
  const { lastHash: head } = (done as never as { result: { archive: { lastHash: string } } }).result
    .archive;
  expect(await at.ask("ledger.verify", { hash: head })).toMatchObject({
    problems: [],
    containsHash: true,
    ledgerState: { prunedRows: 6 },
  });
  await expect(at.ask("ledger.prune", { before: now })).rejects.toThrow(/at least one day ago/);
  expect(at.log.some(({ msg }) => String(msg).includes("replaced by rollups"))).toBe(true);
});

it.each([
  ["ledger: { retention: 3h }", /must be at least 1d/],
  ["ledger: { retention: 400d }\nstore: memory", /"memory" cannot replace rows/],
  ["ledger: { retain: 400d }", /retention/],
])("%s is rejected, with its location", async (yaml, words) => {
  await expect(startInProcess({ yaml: YAML + yaml })).rejects.toThrow(words);
});
