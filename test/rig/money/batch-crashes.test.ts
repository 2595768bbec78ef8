import { expect, it } from "vitest";
import { hasPostgres } from "../../kit/database/postgres.ts";
import { runBatchCrashes } from "./batch-crashes.ts";

it.each(["sqlite", "postgres"] as const)(
  "on %s, killed gateways lose no line of a batch and bill none twice",
  async (store) => {
    if (store === "postgres" && !hasPostgres()) return;
    const { wrong, counts } = await runBatchCrashes({ store, kills: 12, seed: 2 });
    expect(wrong).toEqual([]);
    expect(counts["confirmed"]).toBeGreaterThan(0);
  },
);
