// Nested budgets, with many concurrent calls, from two processes: no bill exceeds a parent
// account's limit, and no call is rejected except by a full meter.
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Reserve, Store, CommandResult } from "tollgate/plugin";
import type { AccountConfig } from "../../../src/config/gateway-config.ts";
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import { createBatchForwarder } from "../../../src/runtime/workers/batch-forwarder.ts";
import {
  unpackResults,
  packBatch,
  packResults,
  unpackBatch,
} from "../../../src/runtime/workers/remote-store.ts";
import { Accounts } from "../../../src/pipeline/accounts/accounts.ts";
import { makeMemory, makeSqlite } from "../../plugins/stores/stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

const tree = fc.array(
  fc.record({ under: fc.nat(), max: fc.option(fc.bigInt(0n, 60n), { nil: undefined }) }),
  { minLength: 1, maxLength: 6 },
);
const call = fc.record({
  of: fc.nat(),
  worker: fc.nat(1),
  hold: fc.bigInt(1n, 25n),
  /** Percent of the reservation. A hard one is never too small. */
  bill: fc.bigInt(0n, 100n),
  /** Turns of the queue between start and end of a call. */
  turns: fc.nat(5),
});

const budget = (id: string, max: bigint) =>
  ({ scope: `account:${id}`, unit: "nano_usd", max, per: "total" }) as const;

const stores: [string, () => Promise<{ store: Store; dispose(): Promise<void> }>][] = [
  ["memory", makeMemory],
  ["sqlite", () => makeSqlite({ durability: "process" })],
];

describe.each(stores)("on the %s store", (_name, make) => {
  it("Σ bills ≤ each account's budget, and each rejection names a full one", async () => {
    const made = await make();
    onTestFinished(() => made.dispose());
    await made.store.open({ instance: "one" });
    const apply = createBatchForwarder(made.store);
    // Like with two workers: encoded, sent together, and decoded.
    const workers = [0, 1].map(() =>
      createLedgerQueue({
        apply: async (batch) =>
          unpackResults(packResults(await apply(unpackBatch(packBatch(batch))))),
      }),
    );
    let runs = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(
        tree,
        fc.array(call, { minLength: 1, maxLength: 40 }),
        async (nodes, calls) => {
          const run = ++runs;
          const ids = nodes.map((_, i) => `r${run}a${i}`);
          const accounts = new Accounts(
            new Map(
              nodes.map(({ under, max }, i): [string, AccountConfig] => [
                ids[i]!,
                {
                  id: ids[i]!,
                  parent: i === 0 ? undefined : ids[under % i],
                  limits: max === undefined ? [] : [budget(ids[i]!, max)],
                  labels: {},
                  name: undefined,
                  models: undefined,
                  frontends: undefined,
                  privacy: undefined,
                },
              ]),
            ),
          );
          const held = new Map<string, bigint>();
          const add = (path: string, amount: bigint) => {
            for (const id of path.split("/")) held.set(id, (held.get(id) ?? 0n) + amount);
          };
          const all = await Promise.all(
            calls.map(async ({ of, worker, hold, bill, turns }, i) => {
              const branch = accounts.resolve(ids[of % ids.length]!);
              const ledger = workers[worker]!;
              const attempt = `${run}.${i}`;
              const command: Reserve & { at: number } = {
                do: "reserve",
                at: Date.now(),
                attempt,
                request: attempt,
                number: 1,
                key: `k${of}`,
                target: { provider: "p", model: "m", protocol: null, credential: "c" },
                privacy: "off",
                labels: {},
                account: branch.path,
                claims: branch.limits.map((limit) => ({ ...limit, take: hold })),
                holdNano: hold,
                price: null,
              };
              const verdict: CommandResult = await ledger.reserve(command);
              if (!verdict.ok) {
                // The named limit is its own, and had less left than requested.
                expect(branch.limits.map(({ scope }) => scope)).toContain(verdict.denied.scope);
                expect(BigInt(verdict.denied.remaining)).toBeLessThan(hold);
                refused++;
                return undefined;
              }
              for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
              const costNano = (hold * bill) / 100n;
              await ledger.settle({
                do: "settle",
                at: Date.now(),
                attempt,
                state: "exact",
                usage: {},
                costNano,
                outcome: "ok",
              });
              add(branch.path, costNano);
              return undefined;
            }),
          );
          expect(all).toHaveLength(calls.length);
          for (const [i, { max }] of nodes.entries()) {
            const spent = held.get(ids[i]!) ?? 0n;
            if (max !== undefined) expect(spent).toBeLessThanOrEqual(max);
            // Exact to the nano-dollar: the rest is the unspent amount.
            const left = await workers[0]!.reserve({
              do: "reserve",
              at: Date.now(),
              attempt: `${run}.look${i}`,
              request: "look",
              number: 1,
              key: "look",
              target: { provider: "p", model: "m", protocol: null, credential: "c" },
              privacy: "off",
              labels: {},
              claims: max === undefined ? [] : [{ ...budget(ids[i]!, max), take: 0n }],
              holdNano: 0n,
              price: null,
            });
            if (max !== undefined)
              expect(left).toMatchObject({ limits: [{ remaining: max - spent }] });
            const [total] = await made.store.sumEntries({ by: [], account: ids[i]! });
            expect(total?.costNano ?? 0n).toBe(spent);
          }
        },
      ),
      { numRuns: trialCount(25) },
    );
    expect(refused).toBeGreaterThan(0);
    for (const worker of workers) await worker.close();
  });
});
