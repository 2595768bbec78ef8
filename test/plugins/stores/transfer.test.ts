// A ledger is moved from one kind of store to the other and back: rows, sums, budgets, and open
// calls are the same, and the chain records its origin.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { LedgerImport, LedgerExport } from "../../../src/plugin/store/ledger-transfer.ts";
import type { Store, StoreCommand } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { createPostgresStore, type PostgresStore } from "../../../plugins/stores/postgres/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { onFile } from "./stores-under-test.ts";
import { sharedLedger } from "./memory-fleet-store.ts";
import { settings } from "./postgres-under-test.ts";

const DAY = 86_400_000;
const LIMITS = [
  { scope: "key:alice", unit: "nano_usd", max: 10n ** 12n, per: "total" },
  { scope: "key:alice", unit: "nano_usd", max: 10n ** 12n, per: "month" },
  { scope: "key:alice", unit: "requests", max: 10n ** 6n, per: "day" },
] as const;
const BY = ["key", "model", "state", "day"] as const;

async function copied(from: Store, to: Store) {
  await using out: LedgerExport = await from.transfer!.openExport();
  await using into: LedgerImport = await to.transfer!.openImport();
  let after = into.after;
  const pages = async () => {
    for (let more = true; more;) {
      const page = await out.readRows(after);
      await into.writeRows(page);
      ({ next: after, more } = page);
    }
  };
  await pages();
  await out.stopWrites();
  await pages();
  const rest = await out.readRemainder();
  return { rest, ...(await into.finish(rest)) };
}

/** Calls of two processes: some open, some recovered, some corrected. */
async function filled(store: Store, label: string): Promise<void> {
  await store.open({ instance: "first" });
  const claims = LIMITS.map((limit) => ({ ...limit, take: 100n }));
  await store.apply([
    {
      do: "key",
      at: NOON,
      key: { id: "alice", digest: "d", created: NOON, name: "Alice", version: 3 },
    },
    { do: "price", at: NOON, hash: "p", price: { usd: {} } as never },
  ] as StoreCommand[]);
  for (let day = 0; day < 4; day++) {
    const at = NOON + day * DAY;
    const labels = { user: `${label}-${day}` };
    await store.apply([
      reserveCommand(`a${day}`, { at, labels, claims }),
      reserveCommand(`b${day}`, { at, claims }),
      settleCommand(`a${day}`, {
        at: at + 5,
        costNano: 7n,
        usage: { inputTokens: 3, outputTokens: 2.5 } as never,
      }),
    ]);
    await store.apply([
      settleCommand(`b${day}`, { at: at + DAY / 4, costNano: 11n, state: "estimated" }),
    ]);
  }
  await store.apply([
    {
      do: "adjust",
      at: NOON + 3 * DAY,
      attempt: "a0",
      costNano: -2n,
      reason: "late bill",
      actor: "ann",
    },
    reserveCommand("open", { at: NOON + 3 * DAY, labels: { user: label }, claims }),
    { do: "progress", at: NOON + 3 * DAY, attempt: "open", usage: {}, costNano: 40n },
  ]);
  await store.audit!.begin({
    id: "x",
    at: NOON,
    actor: "shell",
    role: "owner",
    channel: "socket",
    command: "keys.create",
  });
  await store.audit!.end({ id: "x", at: NOON + 1, outcome: "done" });
}

const said = async (store: Store) => ({
  rows: (await store.listEntries({}, { limit: 1_000 })).items.map(({ seq: _, ...row }) => row),
  totals: await store.sumEntries({ by: BY }),
  counted: await store.readLimits!(LIMITS, NOON + 3 * DAY),
  key: await store.findKey("d"),
  audit: (await store.audit!.list()).items,
  state: (await store.maintenance!.readState!()).prunedRows,
});

/**
 * A reserve that a prune kept only for later corrections, without its settle, is listed by one
 * store and not by the other.
 */
const spoken = <R extends { kind: string; attempt: string }>(rows: readonly R[]): R[] =>
  rows.filter(
    ({ kind, attempt }) =>
      kind !== "reserve" ||
      attempt === "open" ||
      rows.some((row) => row.kind === "settle" && row.attempt === attempt),
  );

it.each([0, 1, 2])(
  "a ledger moves from a file to a store on the kit and back, with %i days pruned, without any difference",
  async (days) => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-kit-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const inFile = async (name: string) => {
      const made = await onFile(join(folder, name));
      onTestFinished(() => made.dispose());
      return made;
    };
    const one = await inFile("one.db");
    await filled(one.store, "anna");
    if (days > 0) await one.store.maintenance!.prune!(NOON + (days - 1) * DAY + 1_000);
    const before = await said(one.store);
    await one.dispose();
    const kept = sharedLedger().createMovableStore();
    await copied((await inFile("one.db")).store, kept);
    expect(await kept.verify!()).toEqual([]);
    const there = await said(kept);
    expect(spoken(there.rows)).toEqual(spoken(before.rows));
    expect({ ...there, rows: [] }).toEqual({ ...before, rows: [] });
    const back = await inFile("back.db");
    await copied(kept, back.store);
    await back.store.open({ instance: "third" });
    expect(await back.store.verify!()).toEqual([]);
    const after = await said(back.store);
    expect(spoken(after.rows).slice(0, -1)).toEqual(spoken(before.rows));
    expect(after.rows.at(-1)).toMatchObject({
      attempt: "open",
      outcome: "recovered",
      costNano: 40n,
    });
    expect({ ...after, rows: [], totals: [], counted: [] }).toEqual({
      ...before,
      rows: [],
      totals: [],
      counted: [],
    });
  },
);

describe.skipIf(!hasPostgres())("a ledger is moved", () => {
  let server: Postgres;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-moving-"));
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await server?.[Symbol.asyncDispose]();
  });

  const inPostgres = async (): Promise<PostgresStore> => {
    const store = createPostgresStore(settings(await server.database()));
    onTestFinished(() => store.close());
    return store;
  };
  const inFile = async (name: string) => {
    const made = await onFile(join(folder, name));
    onTestFinished(() => made.dispose());
    return made;
  };

  it.each([0, 1, 2])(
    "to PostgreSQL and back, with %i days pruned, without any difference",
    async (days) => {
      const one = await inFile(`one-${days}.db`);
      await filled(one.store, "anna");
      if (days > 0) await one.store.maintenance!.prune!(NOON + (days - 1) * DAY + 1_000);
      const before = await said(one.store);
      await one.dispose();
      const source = await inFile(`one-${days}.db`);
      const there = await inPostgres();
      const first = await copied(source.store, there);
      expect(first.rest.head).toMatch(/^[0-9a-f]{64}$/);
      await there.open({ instance: "second" }).then(({ recovered }) => expect(recovered).toBe(1));
      const moved = await said(there);
      expect(await there.verify!()).toEqual([]);
      expect(await there.commands!["contains"]!.run({ hash: first.rest.head! })).toBe(true);
      expect(spoken(moved.rows).slice(0, -1)).toEqual(spoken(before.rows));
      expect(moved.rows.at(-1)).toMatchObject({
        attempt: "open",
        outcome: "recovered",
        costNano: 40n,
      });
      expect({ ...moved, rows: 0, totals: 0, counted: 0 }).toEqual({
        ...before,
        rows: 0,
        totals: 0,
        counted: 0,
      });
      await there.close();

      const back = await inFile(`two-${days}.db`);
      const second = await copied(there, back.store);
      await back.store.open({ instance: "third" });
      expect(await back.store.verify!()).toEqual([]);
      expect(await said(back.store)).toEqual(moved);
      const { commands } = back.store as PostgresStore;
      expect(await commands!["contains"]!.run({ hash: second.rest.head! })).toBe(true);
      await back.store.apply([
        reserveCommand("next", {
          at: NOON + 4 * DAY,
          claims: LIMITS.map((l) => ({ ...l, take: 1n })),
        }),
      ]);
      expect(await back.store.verify!()).toEqual([]);
    },
  );

  it("during writes, copies only rows; the next run copies the new ones, and none twice", async () => {
    const one = await inFile("live.db");
    await filled(one.store, "berta");
    const there = await inPostgres();
    {
      const reader = await inFile("live.db");
      await expect(copied(reader.store, there)).rejects.toMatchObject({});
    }
    await expect(there.open({ instance: "early" })).rejects.toThrow(/is incomplete/);
    await one.store.apply([
      reserveCommand("late", { at: NOON + 5 * DAY }),
      settleCommand("late", { at: NOON + 5 * DAY }),
    ]);
    await one.store.apply([settleCommand("open", { at: NOON + 5 * DAY, costNano: 3n })]);
    const before = await said(one.store);
    await one.dispose();
    const source = await inFile("live.db");
    await copied(source.store, there);
    await there.open({ instance: "second" });
    expect(await said(there)).toEqual(before);
    expect(await there.verify!()).toEqual([]);
    await expect(there.transfer!.openImport()).rejects.toThrow(/already/);
  });

  it("with any history of calls, and the other store has the same results", async () => {
    const word = fc.constantFrom("r", "s", "a", "p");
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(word, fc.nat(7), fc.nat(50)), { maxLength: 40 }),
        async (words) => {
          const name = `any-${Math.random()}.db`;
          const one = await onFile(join(folder, name));
          await one.store.open({ instance: "one" });
          let at = NOON;
          for (const [what, who, n] of words) {
            at += n * 100_000;
            const attempt = `x${who}`;
            const command: StoreCommand =
              what === "r"
                ? reserveCommand(attempt, {
                    at,
                    labels: { user: `u${n % 3}` },
                    claims: LIMITS.map((l) => ({ ...l, take: 60n })),
                  })
                : what === "s"
                  ? settleCommand(attempt, { at, costNano: BigInt(n) })
                  : what === "a"
                    ? { do: "adjust", at, attempt, costNano: BigInt(n), reason: "r", actor: "x" }
                    : { do: "progress", at, attempt, usage: {}, costNano: BigInt(n) };
            await one.store.apply([command]).catch(() => undefined);
          }
          const before = await said(one.store);
          await one.dispose();
          const source = await onFile(join(folder, name));
          const there = createPostgresStore(settings(await server.database()));
          try {
            await copied(source.store, there);
            await there.open({ instance: "one" });
            const { rows } = await said(there);
            expect(rows.slice(0, before.rows.length)).toEqual(before.rows);
            expect(await there.verify!()).toEqual([]);
          } finally {
            await source.dispose();
            await there.close();
          }
        },
      ),
      { numRuns: 5 },
    );
    expect(existsSync(folder)).toBe(true);
  });
});
