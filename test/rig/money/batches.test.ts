import { expect, it } from "vitest";
import { hasPostgres } from "../../kit/database/postgres.ts";
import { runBatches } from "./batches.ts";

it.each(["sqlite", "memory", "postgres"] as const)(
  "on %s, each line of a batch has one bill, by the provider's usage at half of the list price",
  async (store) => {
    if (store === "postgres" && !hasPostgres()) return;
    const { wrong, counts } = await runBatches({ batches: 60, swaps: 6, seed: 3, store });
    expect(wrong).toEqual([]);
    expect(counts["batches"]).toBe(60);
  },
);
