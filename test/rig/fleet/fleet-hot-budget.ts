// One budget that every call of every gateway uses: calls per second with exact counting at the
// budget's row and with budget leases, alternately in one run. It also measures how often a batch
// is repeated, and how long a thousand calls wait for a rejection when the budget is spent. It runs
// stores only, each with its own connection, without the rest of a gateway.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPostgresStore, type PostgresStore } from "../../../plugins/stores/postgres/store.ts";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { createSlowFsync } from "../../kit/database/c-programs.ts";
import { startPostgres } from "../../kit/database/postgres.ts";
import { startSlowLink, type SlowLink } from "../../kit/database/slow-link.ts";
import { settings } from "../../plugins/stores/postgres-under-test.ts";
import { deadlocksIn } from "./fleet-sql-mutants.ts";
import type { Rig, RigResult } from "../rig.ts";
import { percentile } from "../load/load-generator.ts";

const TAKE = 1_000n;
const MAX = 10n ** 15n;
/** Leases exist once a gateway has measured its usage. */
const WARM_MS = 3_000;

interface Seen {
  calls: number;
  readonly waits: number[];
  wrong: string[];
}

interface Of {
  readonly url: string;
  readonly nodes: number;
  /** Concurrent calls of all nodes. Each is in the store twice, for its reserve and its settle. */
  readonly flying: number;
  readonly ms: number;
  readonly road: SlowLink;
  readonly slicesFrom: number;
  readonly name: string;
}

/** A store that reaches its database through the slow link. */
async function joined(
  stack: AsyncDisposableStack,
  { url, road }: Pick<Of, "url" | "road">,
  instance: string,
  slicesFrom = 0,
): Promise<PostgresStore> {
  const { address } = settings(road.through(url));
  const by = { address, ownerAddress: address, reportAddress: address, clock: "database" } as const;
  const store = createPostgresStore(settings(url, { ...by, leaseThreshold: slicesFrom }));
  stack.defer(() => store.close());
  await store.open({ instance });
  return store;
}

async function drawn(of: Of): Promise<Seen> {
  await using stack = new AsyncDisposableStack();
  const stores: PostgresStore[] = [];
  for (let i = 0; i < of.nodes; i++) {
    const store = await joined(stack, of, `${of.name}-${i}`, of.slicesFrom);
    stores.push(store);
  }
  const seen: Seen = { calls: 0, waits: [], wrong: [] };
  const began = performance.now();
  const [from, to] = [began + WARM_MS, began + WARM_MS + of.ms];
  let all = 0n;
  const pairs = Math.round(of.flying / 2);
  await Promise.all(
    stores.map(async (store, i) => {
      let n = 0;
      const length = Math.max(1, Math.floor(pairs / of.nodes) + (i < pairs % of.nodes ? 1 : 0));
      // Like the ledger queue: commands that wait during a batch form the next one.
      let ending: string[] = [];
      while (performance.now() < to) {
        const at = Date.now();
        const fresh = Array.from({ length }, () => `${of.name}.${i}.${n++}`);
        const claims = [
          { scope: `account:${of.name}`, unit: "nano_usd", max: MAX, per: "total", take: TAKE },
        ] as const;
        const sent = performance.now();
        const verdicts = await store.apply([
          ...ending.map((attempt) => settleCommand(attempt, { at, costNano: TAKE })),
          ...fresh.map((attempt) => reserveCommand(attempt, { at, claims })),
        ]);
        if (verdicts.some(({ ok }) => !ok)) seen.wrong.push(`${of.name}: refused with room`);
        all += BigInt(fresh.length) * TAKE;
        if (sent >= from) {
          seen.calls += fresh.length;
          seen.waits.push(performance.now() - sent);
        }
        ending = fresh;
      }
      const at = Date.now();
      await store.apply(ending.map((attempt) => settleCommand(attempt, { at, costNano: TAKE })));
    }),
  );
  for (const store of stores) await store.close();
  const judge = createPostgresStore(settings(of.url, { clock: "database" }));
  stack.defer(() => judge.close());
  await judge.open({ instance: `${of.name}-judge` });
  const limit = { scope: `account:${of.name}`, unit: "nano_usd", max: MAX, per: "total" } as const;
  const [count] = await judge.readLimits!([limit], Date.now());
  if (count!.used !== all || count!.reserved !== 0n)
    seen.wrong.push(`${of.name}: ${count!.used} used, ${count!.reserved} held, of ${all}`);
  return seen;
}

/** Far from the end of a budget, a batch is sent this often on average. */
const ROUNDS = 1.2;

/**
 * On one budget's row, for concurrent calls of the fleet. Other load can only lower it, so the best
 * round is reported.
 */
const FLYING = 256;
const PROMISED: { readonly [nodes: number]: { readonly aSecond: number; readonly p50Ms: number } } =
  {
    10: { aSecond: 10_000, p50Ms: 10 },
    30: { aSecond: 6_000, p50Ms: 20 },
  };

/** By the server's own counter. A store reports its work when it closes. */
async function askedABatch(sql: (text: string) => Promise<string>): Promise<number> {
  const asked = "SELECT calls FROM pg_stat_user_functions WHERE funcname = 'apply_batch_1'";
  return Number(await sql(`SELECT (${asked}) / count(*)::numeric FROM tollgate.batch`));
}

/** A thousand concurrent calls on a spent budget. */
const MANY = 1_000;
const SPENT = { p50: 50, max: 150 };

async function refusals(of: Pick<Of, "url" | "nodes" | "road">): Promise<Seen> {
  await using stack = new AsyncDisposableStack();
  const claims = [
    { scope: "account:spent", unit: "nano_usd", max: 10n * TAKE, per: "total", take: TAKE },
  ] as const;
  const seen: Seen = { calls: 0, waits: [], wrong: [] };
  let passed = 0;
  await Promise.all(
    Array.from({ length: of.nodes }, async (_, i) => {
      const store = await joined(stack, of, `spent-${i}`);
      for (let n = 0; n < 20; n++) {
        const at = Date.now();
        const batch = Array.from({ length: MANY }, (__, k) =>
          reserveCommand(`spent.${i}.${n}.${k}`, { at, claims }),
        );
        const sent = performance.now();
        const verdicts = await store.apply(batch);
        // The first one finds some left.
        if (n > 0) seen.waits.push(performance.now() - sent);
        passed += verdicts.filter(({ ok }) => ok).length;
        seen.calls += MANY;
      }
    }),
  );
  if (passed !== 10) seen.wrong.push(`${passed} of a budget of 10 were let through`);
  return seen;
}

/** A disk with slower flushes. Without a compiler, it is this machine's. */
function slowed(stack: AsyncDisposableStack, ms: number | undefined): NodeJS.ProcessEnv {
  if (!ms) return {};
  const folder = mkdtempSync(join(tmpdir(), "tollgate-hot-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const said = join(folder, "ms");
  writeFileSync(said, `${ms}`);
  const disk = createSlowFsync(said);
  if (disk) stack.use(disk);
  return disk?.env ?? {};
}

export async function fleetHot(of: {
  nodes: number;
  flying: number;
  seconds: number;
  rounds: number;
  /** Delay in each direction between a node and its database. */
  delayMs: number;
  /** Additional time of a flush. Undefined: none. */
  fsyncMs: number | undefined;
  /** Maximum factor for the documented time of a rejection. */
  patience: number;
}): Promise<RigResult> {
  await using stack = new AsyncDisposableStack();
  const postgres = stack.use(
    await startPostgres({
      env: slowed(stack, of.fsyncMs),
      settings: [
        `fsync=${of.fsyncMs === undefined ? "off" : "on"}`,
        "shared_buffers=256MB",
        "max_wal_size=4GB",
        "track_functions=pl",
      ],
    }),
  );
  const url = await postgres.database();
  const road = stack.use(await startSlowLink({ port: postgres.port, ms: of.delayMs }));
  const wrong: string[] = [];
  const ways = { row: 0, slices: 1 } as const;
  const best: { row?: Seen; slices?: Seen } = {};
  for (let round = 0; round < of.rounds; round++)
    for (const way of ["row", "slices"] as const) {
      const { nodes, flying, seconds } = of;
      const seen = await drawn({
        url,
        nodes,
        flying,
        road,
        ms: seconds * 1_000,
        slicesFrom: ways[way],
        name: `${way}${round}`,
      });
      if (seen.calls > (best[way]?.calls ?? -1)) best[way] = seen;
      wrong.push(...seen.wrong);
    }
  const asked = await askedABatch((text) => postgres.sql(url, text));
  if (!(asked <= ROUNDS)) wrong.push(`a batch was asked ${asked} times in the mean`);
  const spent = await refusals({ url, nodes: Math.min(3, of.nodes), road });
  wrong.push(...spent.wrong);
  const [middle, longest] = [percentile(spent.waits, 0.5), Math.max(...spent.waits)];
  if (middle > SPENT.p50 * of.patience || longest > SPENT.max * of.patience)
    wrong.push(`${MANY} calls waited ${middle} ms for a no, at most ${longest} ms`);
  wrong.push(...(await deadlocksIn((text) => postgres.sql(url, text))));
  const rate = (way: keyof typeof ways) => Math.round(best[way]!.calls / of.seconds);
  const at = (way: keyof typeof ways, share: number) =>
    Math.round(percentile(best[way]!.waits, share) * 10) / 10;
  const promised = of.flying === FLYING ? PROMISED[of.nodes] : undefined;
  if (promised && of.patience === 1) {
    if (rate("row") < promised.aSecond)
      wrong.push(`${rate("row")} calls a second, and ${promised.aSecond} are promised`);
    if (at("row", 0.5) > promised.p50Ms)
      wrong.push(`a batch takes ${at("row", 0.5)} ms, and ${promised.p50Ms} are promised`);
  }
  return {
    wrong,
    counts: {
      nodes: of.nodes,
      "row-a-second": rate("row"),
      "slices-a-second": rate("slices"),
      gain: Math.round((rate("slices") / rate("row")) * 100) / 100,
      "row-p50-ms": at("row", 0.5),
      "slices-p50-ms": at("slices", 0.5),
      "row-p99-ms": at("row", 0.99),
      "slices-p99-ms": at("slices", 0.99),
      "asked-a-batch": Math.round(asked * 1_000) / 1_000,
      "spent-p50-ms": Math.round(middle),
      "spent-max-ms": Math.round(longest),
    },
    seed: 0,
  };
}

export const rig: Rig = {
  options: {
    nodes: 10,
    flying: FLYING,
    seconds: 4,
    rounds: 2,
    delay: 0.3,
    fsync: "1",
    patience: 1,
  },
  run: ({ nodes, flying, seconds, rounds, delay, fsync, patience }) =>
    fleetHot({
      nodes: Number(nodes),
      flying: Number(flying),
      seconds: Number(seconds),
      rounds: Number(rounds),
      delayMs: Number(delay),
      fsyncMs: fsync === "off" ? undefined : Number(fsync),
      patience: Number(patience),
    }),
};
