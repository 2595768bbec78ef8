import { expect, it } from "vitest";
import type { LedgerEntry } from "tollgate/plugin";
import { miscounted, type Counted } from "./fleet-consistency.ts";

const row = (kind: string, costNano: bigint | null, of: object = {}) =>
  ({
    kind,
    costNano,
    key: "alice",
    account: "house/team",
    instance: "one",
    target: { provider: "p", model: "m", credential: "0" },
    ...of,
  }) as unknown as LedgerEntry;

const ROWS = [
  row("reserve", null),
  row("settle", 70n),
  row("settle", 5n, { key: "bob", account: undefined, instance: "two" }),
  row("adjust", -20n, { instance: "two" }),
];
const TRUE: Counted = {
  meters: [
    { id: "nano_usd|total|0|key:alice", level: 50n, held: 0n },
    { id: "nano_usd|day|86400000|account:house", level: 30n, held: 0n },
    { id: "nano_usd|day|172800000|account:house", level: 20n, held: 0n },
    { id: "requests|day|86400000|account:team", level: 1n, held: 0n },
    { id: "nano_usd|minute|0|key:alice", level: 4n, held: 0n },
  ],
  sums: {
    node: new Map([
      ["one", 70n],
      ["two", -15n],
    ]),
    key: new Map([
      ["alice", 50n],
      ["bob", 5n],
    ]),
    provider: new Map([["p", 55n]]),
  },
};
const meter = (i: number, of: object): Counted => ({
  ...TRUE,
  meters: TRUE.meters.with(i, { ...TRUE.meters[i]!, ...of }),
});
const sum = (by: keyof Counted["sums"], name: string, nano: bigint): Counted => ({
  ...TRUE,
  sums: { ...TRUE.sums, [by]: new Map([...TRUE.sums[by], [name, nano]]) },
});

it("correct rows pass", () => {
  expect(miscounted(ROWS, TRUE)).toEqual([]);
});

it.each([
  ["a budget has counted less than its calls", meter(0, { level: 49n })],
  ["one that was corrected has counted what it was before", meter(0, { level: 70n })],
  ["of an account's two days one is missing", meter(1, { level: 0n })],
  ["a call is counted twice", meter(3, { level: 2n })],
  ["something is held of calls that are over", meter(0, { held: 1n })],
  ["a unit that no rows are known of", meter(0, { id: "parsecs|total|0|key:alice" })],
  ["a gateway's sum is another one", sum("node", "one", 71n)],
  ["there is a sum of a gateway that has no rows", sum("node", "three", 1n)],
  ["a key's sum is another one", sum("key", "bob", 0n)],
  ["a provider's sum is another one", sum("provider", "p", 54n)],
])("found: %s", (_, counted) => {
  expect(miscounted(ROWS, counted)).toHaveLength(1);
});
