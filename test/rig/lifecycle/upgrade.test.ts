import { expect, it } from "vitest";
import { upgrade, type Killed } from "./upgrade.ts";

const SHORT = { perSecond: 25, seed: 7 } as const;

it.each([
  ["one process", 2, 1, "nobody"],
  ["one process, and two workers", 1, 2, "nobody"],
  ["a new one that is killed before it serves", 2, 1, "successor"],
  ["an old one that is killed after it", 1, 1, "predecessor"],
] as const)(
  "a gateway is replaced under load: %s",
  async (_, upgrades, workers, killed: Killed) => {
    const { wrong, counts } = await upgrade({ ...SHORT, upgrades, workers, killed });
    expect(wrong).toEqual([]);
    expect(counts["asked"]).toBeGreaterThan(10);
  },
  120_000,
);
