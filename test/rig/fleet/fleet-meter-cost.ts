// Compares the model's row of three nodes with three real ones. One node with small and large
// batches gives the database cost of a statement and of a meter. From these, the model predicts the
// CPU use of three nodes, which is then measured. This supports its rows for fleets that no test
// machine can run.
import type { StoreCommand } from "tollgate/plugin";
import { createPostgresStore, type PostgresStore } from "../../../plugins/stores/postgres/store.ts";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { cpu } from "../../bench/process.ts";
import { startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { settings } from "../../plugins/stores/postgres-under-test.ts";
import { MEASURED, METERS_A_CALL, reckoned } from "./fleet-model.ts";
import type { Rig, RigResult } from "../rig.ts";

const MAX = 10n ** 15n;
const KEYS = 600;
const KEYS_A_TEAM = 20;

/** As in the model: two rate limits and budgets of the key, its team, and its organization. */
const claimsOf = (key: number) =>
  [
    { scope: `key:${key}`, unit: "requests", max: MAX, per: "minute", take: 1n },
    { scope: `key:${key}`, unit: "input", max: MAX, per: "minute", take: 100n },
    { scope: `key:${key}`, unit: "nano_usd", max: MAX, per: "total", take: 1_000n },
    {
      scope: `account:team-${Math.floor(key / KEYS_A_TEAM)}`,
      unit: "nano_usd",
      max: MAX,
      per: "total",
      take: 1_000n,
    },
    { scope: "account:organisation", unit: "nano_usd", max: MAX, per: "total", take: 1_000n },
  ] as const;

interface Drawn {
  calls: number;
  batches: number;
  /** Microseconds of the database's CPU. */
  micros: number;
  seconds: number;
}

/** Number of calls that start in each batch. Those of the previous batch end in it. */
async function drawn(
  postgres: Postgres,
  stores: readonly PostgresStore[],
  { size, ms }: { readonly size: number; readonly ms: number },
): Promise<Drawn> {
  const seen: Drawn = { calls: 0, batches: 0, micros: 0, seconds: 0 };
  const turns = async (store: PostgresStore, of: number, until: number, counts: boolean) => {
    let ending: string[] = [];
    let key = of;
    for (let n = 0; performance.now() < until || ending.length > 0; n++) {
      const at = Date.now();
      const over = performance.now() >= until;
      const fresh = over
        ? []
        : Array.from({ length: size }, (_, i) => `${of}-${crypto.randomUUID()}.${i}`);
      const batch: StoreCommand[] = [
        ...ending.map((attempt) => settleCommand(attempt, { at, costNano: 1_000n })),
        ...fresh.map((attempt) =>
          reserveCommand(attempt, { at, claims: claimsOf((key = (key + 7) % KEYS)) }),
        ),
      ];
      const verdicts = await store.apply(batch);
      if (verdicts.some(({ ok }) => !ok))
        throw new Error("A call was refused where there was room.");
      if (counts) [seen.calls, seen.batches] = [seen.calls + fresh.length, seen.batches + 1];
      ending = fresh;
    }
  };
  const all = (until: number, counts: boolean) =>
    Promise.all(stores.map((store, i) => turns(store, i, until, counts)));
  // A first run for one-time costs.
  await all(performance.now() + ms / 4, false);
  const [began, before] = [performance.now(), cpu(postgres.pid)];
  await all(began + ms, true);
  seen.micros = cpu(postgres.pid) - before;
  seen.seconds = (performance.now() - began) / 1_000;
  return seen;
}

/** `off`: maximum difference between model and measurement. */
export async function fleetRow(of: { ms: number; off: number }): Promise<RigResult> {
  await using postgres = await startPostgres({ settings: ["max_wal_size=4GB"] });
  const url = await postgres.database();
  await using stack = new AsyncDisposableStack();
  const stores: PostgresStore[] = [];
  for (let i = 0; i < 3; i++) {
    const store = createPostgresStore(settings(url, { clock: "database" }));
    stack.defer(() => store.close());
    await store.open({ instance: `node-${i}` });
    stores.push(store);
  }
  const one = (size: number) => drawn(postgres, stores.slice(0, 1), { size, ms: of.ms });
  const [small, large] = [await one(1), await one(32)];
  // Each batch is a statement and the meters of its calls: two sizes give two equations.
  const [a, b] = [small, large].map(({ micros, batches, calls }) => ({
    micros: micros / batches,
    meters: (METERS_A_CALL * calls) / batches,
  })) as [{ micros: number; meters: number }, { micros: number; meters: number }];
  const meter = (b.micros - a.micros) / (b.meters - a.meters);
  const statement = a.micros - a.meters * meter;
  const real = await drawn(postgres, stores, { size: 8, ms: of.ms });
  const costs = { ...MEASURED, statement, meter, batch: (3_000 * real.seconds) / real.batches };
  const row = reckoned({ name: "3 nodes", nodes: 3, rate: real.calls / real.seconds }, costs, 1);
  const cores = real.micros / 1e6 / real.seconds;
  const ratio = cores / row.cores;
  const said = (value: number) => Math.round(value * 100) / 100;
  return {
    wrong:
      Math.abs(Math.log(ratio)) > Math.log(1 + of.off)
        ? [`three nodes took ${said(cores)} of a core, and the model says ${said(row.cores)}`]
        : [],
    counts: {
      statement_us: Math.round(statement),
      meter_us: said(meter),
      calls_a_second: Math.round(real.calls / real.seconds),
      cores: said(cores),
      model: said(row.cores),
      ratio: said(ratio),
    },
    seed: 0,
  };
}

export const rig: Rig = {
  options: { seconds: 5, off: 0.3 },
  run: ({ seconds, off }) => fleetRow({ ms: Number(seconds) * 1_000, off: Number(off) }),
};
