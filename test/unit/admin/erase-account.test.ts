// Erasing an account deletes its jobs of all kinds in every store, also while gateways lease them,
// and nothing of other accounts. An account with a running job is not erased.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ErasureRequest, JobRecord, JobStore } from "tollgate/plugin";
import { createMaintenanceCommands } from "../../../src/admin/commands/maintenance-commands.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { createJobTable } from "../../../plugins/stores/postgres/membership/job-table.ts";
import { makeSqlite } from "../../plugins/stores/stores-under-test.ts";
import { SimulatedDatabase } from "../../rig/fleet/sim/database.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

const KINDS = ["file", "upload", "batch", "webhook", "response", "video"];
/** A record contains the path of its account, or only its last name. */
const ACCOUNTS = ["acme", "group/acme", "acme/nested", "other", undefined] as const;
const KEYS = [
  { id: "alice", account: "acme" },
  { id: "bob", account: "other" },
];
const isOwn = ({ account, key }: Pick<JobRecord, "account" | "key">): boolean =>
  account === "acme" || account === "group/acme" || (account === undefined && key === "alice");

const ends: (() => Promise<unknown>)[] = [];
const stores: Record<string, () => Promise<JobStore>> = {
  memory: async () => createMemoryJobs(),
  async SQLite() {
    const { store, dispose } = await makeSqlite();
    ends.push(async () => dispose());
    await store.open({ instance: "i" });
    return store.jobs!;
  },
  async PGlite() {
    const database = await SimulatedDatabase.create();
    ends.push(() => database.close());
    return createJobTable(database.ask, "tollgate", true);
  },
};
afterAll(async () => {
  for (const end of ends) await end();
});

const records = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS),
    account: fc.constantFrom(...ACCOUNTS),
    key: fc.constantFrom("alice", "bob"),
    isDue: fc.boolean(),
    isRunning: fc.nat(30).map((n) => n === 0),
  }),
  { maxLength: 12 },
);

describe.each(Object.keys(stores))("%s", (name) => {
  let jobs: JobStore;
  let created = 0;
  beforeAll(async () => {
    jobs = await stores[name]!();
  });

  const readAll = async (): Promise<readonly JobRecord[]> =>
    (await jobs.list({}, { limit: 1_000 })).items;

  it("deletes the jobs of the account and no others", () =>
    fc.assert(
      fc.asyncProperty(records, fc.nat(3), async (some, leases) => {
        for (const { id, version } of await readAll()) await jobs.delete(id, version);
        for (const { isDue, isRunning, account, key, kind } of some)
          await jobs.put({
            id: `j${++created}`,
            kind,
            key,
            ...(account !== undefined && { account }),
            version: 1,
            createdAt: created,
            state: "open",
            ...(isDue && { dueAt: created }),
            ...(isRunning && { attempt: `call-${created}` }),
            data: "{}",
          });
        const before = await readAll();
        const erased: ErasureRequest[] = [];
        let invalidations = 0;
        let left = leases;
        // Another gateway leases a job between its reading and its deletion.
        const raced: JobStore = {
          ...jobs,
          async delete(id, version) {
            if (left-- > 0)
              await jobs.lease({ at: 1e12, owner: "o", leaseMs: 1, limit: 20, kinds: KINDS });
            return jobs.delete(id, version);
          },
        };
        const commands = createMaintenanceCommands(
          {
            store: {
              jobs: raced,
              listKeys: async () => ({ items: KEYS }),
              maintenance: {
                erase: async (what: ErasureRequest) => (erased.push(what), { hashes: [] }),
              },
            },
            use: name,
          } as never,
          async () => void invalidations++,
        );
        const isBlocked = before.some((one) => isOwn(one) && one.attempt !== undefined);
        const run = commands.erase({ account: "acme" });
        if (isBlocked) {
          await expect(run).rejects.toThrow("running jobs");
          expect(await readAll()).toEqual(before);
          expect([erased, invalidations]).toEqual([[], 0]);
          return;
        }
        await run;
        const ids = (all: readonly JobRecord[]) => all.map(({ id }) => id);
        expect(ids(await readAll())).toEqual(ids(before.filter((one) => !isOwn(one))));
        for (const one of before.filter(isOwn)) expect(await jobs.find(one.id)).toBeUndefined();
        expect(erased).toEqual([{ account: "acme" }, { key: "alice" }]);
        expect(invalidations).toBe(1);
      }),
      { numRuns: NIGHTLY ? 100 : 12 },
    ));
});

it("the caches of keys are invalidated if a job was created in between", async () => {
  const jobs = createMemoryJobs();
  let invalidations = 0;
  const erase = async () => {
    const record = { id: "j1", kind: "batch", key: "alice", account: "acme", version: 1 };
    await jobs.put({ ...record, createdAt: 1, state: "open", attempt: "call", data: "{}" });
    return { hashes: [] };
  };
  const commands = createMaintenanceCommands(
    { store: { jobs, listKeys: async () => ({ items: [] }), maintenance: { erase } } } as never,
    async () => void invalidations++,
  );
  await expect(commands.erase({ account: "acme" })).rejects.toThrow("running jobs");
  expect(invalidations).toBe(1);
});
