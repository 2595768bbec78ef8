// The return to the database ends when the database has all decisions of the outage, including
// those that were in progress.
import { expect, it } from "vitest";
import type { StoreCommand } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import { OfflineMode } from "../../../../../plugins/stores/postgres/offline/offline-mode.ts";
import { resync } from "../../../../../plugins/stores/postgres/resync.ts";
import type { Spool } from "../../../../../plugins/stores/postgres/offline/spool.ts";
import type { LocalNode } from "../../../../../plugins/stores/postgres/local-node.ts";

const now = (at: number) => at;
const ask = async () => [];

/** `lives`: the database still knows it. */
function stage(lives: boolean) {
  const said: string[] = [];
  const disk = Promise.withResolvers<void>();
  const slow: { [at in "owe" | "paid"]?: Promise<void> } = {};
  const tape = {
    appendUnsent: async () => slow.owe,
    clearUnsent: async () => {
      await slow.paid;
      said.push("paid");
    },
  } as unknown as Spool;
  const node = {
    resume: async () => lives,
    heartbeat: async () => lives && [],
    join: async () => void said.push("joins"),
    requirePosition: () => ({ instance: "one" }),
    applyAgain: async (_: unknown, facts: readonly StoreCommand[]) =>
      facts.map((c) => {
        said.push("attempt" in c ? c.attempt : c.do);
        return { ok: true };
      }),
  } as unknown as LocalNode;
  const outage = new OfflineMode(undefined, () => tape);
  outage.begin([]);
  return {
    said,
    disk,
    node,
    outage,
    slowly: (at: keyof typeof slow = "owe") => void (slow[at] = disk.promise),
  };
}

it.each([
  { lives: true, first: [] },
  { lives: false, first: ["joins"] },
])(
  "rows on their way to the disk are sent before the end, and the spool is replayed last ($first)",
  async ({ lives, first }) => {
    const { said, disk, node, outage, slowly } = stage(lives);
    await outage.decide([settleCommand("a")], now);
    slowly();
    const deciding = outage.decide([settleCommand("b"), settleCommand("c")], now);
    const back = resync(ask, node, outage, undefined);
    // Everything possible is sent, and it waits.
    for (let i = 0; i < 20; i++) await Promise.resolve();
    expect(said).toEqual([...first, "a"]);
    expect(outage.isActive).toBe(true);
    disk.resolve();
    expect(await back).toBe(3);
    await deciding;
    expect(said).toEqual([...first, "a", "b", "c", "paid"]);
    expect(outage.isActive).toBe(false);
  },
);

it("a gateway whose lease expired learns about changes before the database decides its calls", async () => {
  const { node, outage } = stage(false);
  const heard: boolean[] = [];
  const lives = node.heartbeat.bind(node);
  node.heartbeat = async (of) => {
    heard.push(outage.isActive);
    return lives(of);
  };
  await resync(ask, node, outage, undefined);
  expect(heard).toEqual([true]);
});

it("calls that are rejected in the meantime, and never reach the disk, do not end the replay", async () => {
  const { said, disk, node, outage, slowly } = stage(true);
  slowly();
  const deciding = outage.decide([settleCommand("a")], now);
  const refused = outage.decide([reserveCommand("b")], now).catch((error: Error) => error.message);
  const back = resync(ask, node, outage, undefined);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  expect(said).toEqual([]);
  expect(outage.isActive).toBe(true);
  disk.resolve();
  expect(await back).toBe(1);
  await deciding;
  expect(await refused).toMatch(/no budget lease/);
  expect(said).toEqual(["a", "paid"]);
});

it("rows that are added during the replay stay in the spool", async () => {
  const { said, disk, node, outage, slowly } = stage(true);
  await outage.decide([settleCommand("a")], now);
  slowly("paid");
  const back = resync(ask, node, outage, undefined);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  expect(said).toEqual(["a"]);
  outage.begin([]);
  const owing = outage.decide([settleCommand("b")], now).then(() => said.push("owed"));
  for (let i = 0; i < 20; i++) await Promise.resolve();
  disk.resolve();
  await Promise.all([back, owing]);
  expect(said).toEqual(["a", "paid", "owed"]);
});
