// The list of jobs: its pages together contain each job that matches, once, the newest first.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { JobKind, JobRecord, Store } from "tollgate/plugin";
import { createJobCommands, type ShownJobs } from "../../../src/admin/commands/job-commands.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { trialCount } from "../../kit/law-effort.ts";

const ACCOUNTS = ["acme", "acme/research", "other", undefined] as const;
const STATES = ["waiting", "running", "completed"] as const;
const kindNamed = (kind: string): JobKind => ({
  kind,
  openStates: ["waiting", "running"],
  describe: ({ id, state }) => ({
    id,
    status: state === "completed" ? "completed" : state === "waiting" ? "queued" : "running",
  }),
});
const KINDS = new Map(["batch", "video"].map((kind) => [kind, kindNamed(kind)]));

function openList(records: readonly JobRecord[]) {
  const jobs = createMemoryJobs();
  const written = Promise.all(records.map((record) => jobs.put(record)));
  const commands = createJobCommands({
    store: { jobs, listKeys: async () => ({ items: [] }) } as unknown as Pick<
      Store,
      "jobs" | "listKeys"
    >,
    kinds: () => KINDS,
    accountPath: (account) => [account],
  });
  return async (input: object): Promise<ShownJobs> => {
    await written;
    return commands["jobs.list"](input as never) as Promise<ShownJobs>;
  };
}

const recordOf = (n: number, more: Partial<JobRecord>): JobRecord => ({
  id: `j${String(n).padStart(6, "0")}`,
  kind: "batch",
  key: "k",
  version: 1,
  createdAt: n,
  state: "running",
  data: "{}",
  ...more,
});

const records = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS.keys()),
    account: fc.constantFrom(...ACCOUNTS),
    state: fc.constantFrom(...STATES),
    createdAt: fc.nat(20),
  }),
  { maxLength: 40 },
);
const inputs = fc.record({
  kind: fc.option(fc.constantFrom(...KINDS.keys()), { nil: undefined }),
  account: fc.constantFrom("acme", undefined),
  status: fc.constantFrom("open", "completed", "queued", undefined),
  limit: fc.integer({ min: 1, max: 7 }),
});

it("all pages together contain each job that matches once, the newest first", () =>
  fc.assert(
    fc.asyncProperty(records, inputs, async (some, input) => {
      const all = some.map((one, n) => recordOf(n, one));
      const list = openList(all);
      const found: ShownJobs["items"][number][] = [];
      for (let after: string | undefined; ;) {
        const page = await list({ ...input, after });
        expect(page.isTruncated).toBe(page.next !== undefined);
        found.push(...page.items);
        after = page.next;
        if (after === undefined) break;
      }
      const status = (state: string) => KINDS.get("batch")!.describe({ state } as never)!.status;
      const expected = all.filter(
        (one) =>
          (input.kind === undefined || one.kind === input.kind) &&
          (input.account === undefined || one.account?.split("/")[0] === input.account) &&
          (input.status === undefined ||
            (input.status === "open"
              ? one.state !== "completed"
              : status(one.state) === input.status)),
      );
      const order = (a: { createdAt: number; id: string }, b: { createdAt: number; id: string }) =>
        b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
      expect(found.map(({ id }) => id)).toEqual(expected.toSorted(order).map(({ id }) => id));
    }),
    { numRuns: trialCount(400) },
  ));

it("a page that searched 10,000 jobs of others says that there are older ones", async () => {
  const own = recordOf(0, { account: "acme" });
  const foreign = Array.from({ length: 10_050 }, (_, n) => recordOf(n + 1, { account: "other" }));
  const list = openList([own, ...foreign]);
  const input = { account: "acme", kind: "batch" };
  const first = await list(input);
  expect(first).toMatchObject({ items: [], isTruncated: true });
  expect(await list({ ...input, after: first.next })).toMatchObject({
    items: [{ id: own.id }],
    isTruncated: false,
  });
});
