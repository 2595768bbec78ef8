// The way back to the database: it is over when the database knows all that was decided without it, and what was being decided at that moment is among that.
import { expect, it } from "vitest";
import type { StoreCommand } from "../../../src/plugin/store.ts";
import { settle } from "../../../src/testing/store.ts";
import { Outage } from "../../../plugins/stores/postgres/apart.ts";
import { reunited } from "../../../plugins/stores/postgres/reuniting.ts";
import type { Tape } from "../../../plugins/stores/postgres/tape.ts";
import type { ThisNode } from "../../../plugins/stores/postgres/this-node.ts";

const now = (at: number) => at;
const ask = async () => [];

/** `lives`: the database knows it still. */
function stage(lives: boolean) {
  const said: string[] = [];
  const disk = Promise.withResolvers<void>();
  let slow: Promise<void> | undefined;
  const tape = {
    owe: async () => slow,
    paid: async () => void said.push("paid"),
  } as unknown as Tape;
  const node = {
    lost: false,
    catchUp: async () => {},
    lives: async () => lives && [],
    join: async () => void said.push("joins"),
    writing: () => ({ instance: "one" }),
    again: async (_: unknown, facts: readonly StoreCommand[]) =>
      facts.map((c) => {
        said.push("attempt" in c ? c.attempt : c.do);
        return { ok: true };
      }),
  } as unknown as ThisNode;
  const outage = new Outage(undefined, undefined, () => tape);
  outage.begin([]);
  return { said, disk, node, outage, slowly: () => void (slow = disk.promise) };
}

it.each([
  { lives: true, first: [] },
  { lives: false, first: ["joins"] },
])(
  "what is on its way to the disk is told before the end, and the disk is paid last ($first)",
  async ({ lives, first }) => {
    const { said, disk, node, outage, slowly } = stage(lives);
    await outage.decide([settle("a")], now);
    slowly();
    const deciding = outage.decide([settle("b"), settle("c")], now);
    const back = reunited(ask, node, outage, undefined);
    // All that can be told is told, and it waits.
    for (let i = 0; i < 20; i++) await Promise.resolve();
    expect(said).toEqual([...first, "a"]);
    expect(outage.on).toBe(true);
    disk.resolve();
    expect(await back).toBe(3);
    await deciding;
    expect(said).toEqual([...first, "a", "b", "c", "paid"]);
    expect(outage.on).toBe(false);
  },
);
