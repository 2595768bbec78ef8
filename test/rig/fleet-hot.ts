// One budget that every call of every gateway draws on: how many calls a second a fleet makes of it where each is counted at the budget's row, and where it is
// counted in slices; both by turns, in one run. Stores alone, each by a road of its own: what a gateway does besides is no part of it.
import { postgresStore, type PostgresStore } from "../../plugins/stores/postgres/store.ts";
import { reserve, settle } from "../../src/testing/store.ts";
import { startPostgres } from "../kit/postgres.ts";
import { tcpProxy } from "../kit/tcp-proxy.ts";
import { settings } from "../plugins/stores/made-postgres.ts";
import { deadlocksIn } from "./fleet-plants.ts";
import type { Rig, Verdict } from "./rig.ts";
import { percentile } from "./swarm.ts";

const TAKE = 1_000n;
const MAX = 10n ** 15n;
/** Slices are there once a gateway has seen how much it draws. */
const WARM_MS = 3_000;

interface Seen {
  calls: number;
  readonly waits: number[];
  wrong: string[];
}

interface Of {
  readonly url: string;
  readonly nodes: number;
  /** Each node's calls at once. */
  readonly flying: number;
  readonly ms: number;
  /** Each way between a node and its database. */
  readonly delayMs: number;
  readonly slicesFrom: number;
  readonly name: string;
}

async function drawn(of: Of): Promise<Seen> {
  await using stack = new AsyncDisposableStack();
  const stores: PostgresStore[] = [];
  for (let i = 0; i < of.nodes; i++) {
    const road = stack.use(await tcpProxy({ port: Number(new URL(of.url).port) }));
    road.delay(of.delayMs);
    const { address } = settings(road.through(of.url));
    const by = { address, owner: address, reports: address, clock: "database" } as const;
    const store = postgresStore(settings(of.url, { ...by, slicesFrom: of.slicesFrom }));
    stack.defer(() => store.close());
    await store.open({ instance: `${of.name}-${i}` });
    stores.push(store);
  }
  const seen: Seen = { calls: 0, waits: [], wrong: [] };
  const began = performance.now();
  const [from, to] = [began + WARM_MS, began + WARM_MS + of.ms];
  let all = 0n;
  await Promise.all(
    stores.map(async (store, i) => {
      let n = 0;
      // As the ledger's door does it: what waits while a batch is under way is the next one.
      let ending: string[] = [];
      while (performance.now() < to) {
        const at = Date.now();
        const fresh = Array.from({ length: of.flying }, () => `${of.name}.${i}.${n++}`);
        const claims = [
          { scope: `account:${of.name}`, unit: "nano_usd", max: MAX, per: "total", take: TAKE },
        ] as const;
        const sent = performance.now();
        const verdicts = await store.apply([
          ...ending.map((attempt) => settle(attempt, { at, costNano: TAKE })),
          ...fresh.map((attempt) => reserve(attempt, { at, claims })),
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
      await store.apply(ending.map((attempt) => settle(attempt, { at, costNano: TAKE })));
    }),
  );
  for (const store of stores) await store.close();
  const judge = postgresStore(settings(of.url, { clock: "database" }));
  stack.defer(() => judge.close());
  await judge.open({ instance: `${of.name}-judge` });
  const limit = { scope: `account:${of.name}`, unit: "nano_usd", max: MAX, per: "total" } as const;
  const [count] = await judge.counted!([limit], Date.now());
  if (count!.used !== all || count!.held !== 0n)
    seen.wrong.push(`${of.name}: ${count!.used} used, ${count!.held} held, of ${all}`);
  return seen;
}

export async function fleetHot(of: {
  nodes: number;
  flying: number;
  seconds: number;
  rounds: number;
  delayMs: number;
  fsync: boolean;
}): Promise<Verdict> {
  await using postgres = await startPostgres({
    settings: [`fsync=${of.fsync ? "on" : "off"}`, "shared_buffers=256MB", "max_wal_size=4GB"],
  });
  const url = await postgres.database();
  const wrong: string[] = [];
  const ways = { row: 0, slices: 1 } as const;
  const calls = { row: 0, slices: 0 };
  const waits: Record<keyof typeof ways, number[]> = { row: [], slices: [] };
  for (let round = 0; round < of.rounds; round++)
    for (const way of ["row", "slices"] as const) {
      const { nodes, flying, seconds, delayMs } = of;
      const seen = await drawn({
        url,
        nodes,
        flying,
        delayMs,
        ms: seconds * 1_000,
        slicesFrom: ways[way],
        name: `${way}${round}`,
      });
      calls[way] += seen.calls;
      for (const wait of seen.waits) waits[way].push(wait);
      wrong.push(...seen.wrong);
    }
  wrong.push(...(await deadlocksIn((text) => postgres.sql(url, text))));
  const rate = (way: keyof typeof ways) => Math.round(calls[way] / of.rounds / of.seconds);
  const at = (way: keyof typeof ways, share: number) =>
    Math.round(percentile(waits[way], share) * 10) / 10;
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
    },
    seed: 0,
  };
}

export const rig: Rig = {
  options: { nodes: 10, flying: 16, seconds: 4, rounds: 2, delay: 0.3, fsync: "on" },
  run: ({ nodes, flying, seconds, rounds, delay, fsync }) =>
    fleetHot({
      nodes: Number(nodes),
      flying: Number(flying),
      seconds: Number(seconds),
      rounds: Number(rounds),
      delayMs: Number(delay),
      fsync: fsync === "on",
    }),
};
