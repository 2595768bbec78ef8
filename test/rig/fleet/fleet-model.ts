// How many gateways one PostgreSQL supports: fleets that no test machine can run, calculated from
// the cost of a statement, a meter, and a call. Exact: each batch is sent to the database. Leases:
// a node takes a part of a budget, spends it alone, and reports with its heartbeat. This saves
// database work only if few nodes serve a key.
import { createChance, type Chance, type Rig } from "../rig.ts";

/** Microseconds of the database's CPU, measured on PostgreSQL 15. */
interface Costs {
  readonly statement: number;
  readonly meter: number;
  /** A finished call that is reported after its lease. */
  readonly shipped: number;
  /** Milliseconds: commands that wait in this time form one batch. */
  readonly batch: number;
}

interface World {
  readonly name: string;
  readonly nodes: number;
  /** Requests per second, in total. */
  readonly rate: number;
  /** Number of nodes that serve a key. 0: no leases. */
  readonly spread?: number;
  /** Seconds. */
  readonly beat?: number;
  /** Each has its own database. */
  readonly cells?: number;
}

const WORLDS: readonly World[] = [
  { name: "10 nodes, exact", nodes: 10, rate: 10_000 },
  { name: "30 nodes, exact", nodes: 30, rate: 30_000 },
  { name: "30 nodes, leases, any node", nodes: 30, rate: 30_000, spread: 30 },
  { name: "30 nodes, leases, 4 nodes per key", nodes: 30, rate: 30_000, spread: 4 },
  { name: "1,000 nodes, exact", nodes: 1_000, rate: 100_000 },
  { name: "1,000 nodes, leases, any node", nodes: 1_000, rate: 100_000, spread: 1_000 },
  { name: "1,000 nodes, leases, 4 nodes per key", nodes: 1_000, rate: 100_000, spread: 4 },
  { name: "the same, reported every 5 s", nodes: 1_000, rate: 100_000, spread: 4, beat: 5 },
  { name: "25 cells of 40 nodes, exact", nodes: 1_000, rate: 100_000, cells: 25 },
  { name: "25 cells, leases, 4 nodes per key", nodes: 1_000, rate: 100_000, spread: 4, cells: 25 },
];

/**
 * Writes of a call: its two rate limits once, its three budgets at the start, and their changes at
 * the end.
 */
export const METERS_A_CALL = 5.2;
/** A call that ends at a second node or alone needs two statements. */
const STATEMENTS_A_CALL = 2;
/** Two rate limits and a budget of the key, and budgets of a team and an organization. */
const METERS_A_KEY = 3;
const KEYS_A_TEAM = 20;
/** Average time between two calls of a key: few keys have most calls. */
const SECONDS_A_KEY = 1;
/** Simulated seconds, after a warm-up of the same length. */
const LAST = 3;
/** A lease covers this many seconds of a node's usage, and is refilled at half. */
const SLICE = 10;

export interface Reckoned {
  readonly statements: number;
  readonly meters: number;
  /** Share of calls that query the database before they are sent. */
  readonly waits: number;
  readonly cores: number;
}

export function reckoned(of: World, costs: Costs, seed: number): Reckoned {
  const cells = of.cells ?? 1;
  const [nodes, rate] = [of.nodes / cells, of.rate / cells];
  const batches = (nodes * 1_000) / costs.batch;
  const { statements, meters, waits } =
    of.spread === undefined
      ? {
          statements: Math.min(batches, STATEMENTS_A_CALL * rate),
          meters: METERS_A_CALL * rate,
          waits: 1,
        }
      : sliced({ nodes, rate, spread: of.spread, beat: of.beat ?? 1 }, batches, createChance(seed));
  const shipped = of.spread === undefined ? 0 : rate;
  const micros = statements * costs.statement + meters * costs.meter + shipped * costs.shipped;
  return { statements, meters, waits, cores: micros / 1e6 };
}

interface Sliced {
  readonly nodes: number;
  readonly rate: number;
  readonly spread: number;
  readonly beat: number;
}

/** State of one meter at a node. */
interface Slice {
  left: number;
  used: number;
  since: number;
}

/**
 * Calls one after another, each at a node that serves its key. A node without a lease for one of
 * its meters queries the database.
 */
function sliced({ nodes, rate, spread, beat }: Sliced, batches: number, chanced: Chance) {
  const keys = Math.max(100, Math.round(rate * SECONDS_A_KEY));
  const pick = zipf(keys);
  const slices = new Map<number, Slice>();
  const touched = new Set<number>();
  const busy = new Set<number>();
  let [asks, written, waiting, calls, beats] = [0, 0, 0, 0, 0];
  let told = beat;
  const from = LAST;
  for (let t = 0; t < 2 * LAST; t += 1 / rate) {
    const counts = t >= from;
    if (t >= told) {
      if (counts) [written, beats] = [written + touched.size, beats + busy.size];
      touched.clear();
      busy.clear();
      told += beat;
    }
    const key = pick(chanced());
    const node =
      spread >= nodes
        ? chanced.below(nodes)
        : (key * 7_919 + chanced.below(spread) * 104_729) % nodes;
    const firstTeam = METERS_A_KEY * keys;
    const team = firstTeam + Math.floor(key / KEYS_A_TEAM);
    const organization = firstTeam + keys;
    const ofKey = METERS_A_KEY * key;
    let asked = 0;
    for (const meter of [ofKey, ofKey + 1, ofKey + 2, team, organization]) {
      const name = meter * nodes + node;
      touched.add(name);
      const slice = slices.get(name) ?? { left: 0, used: 0, since: t };
      slices.set(name, slice);
      slice.used++;
      if (slice.left > 0) slice.left--;
      else {
        asked++;
        // Usage per second for some seconds, and at least one more call.
        slice.left = Math.floor((slice.used / Math.max(1, t - slice.since)) * SLICE);
        if (t - slice.since > SLICE) [slice.used, slice.since] = [0, t];
      }
    }
    busy.add(node);
    if (!counts) continue;
    calls++;
    if (asked > 0) [asks, waiting, written] = [asks + 1, waiting + 1, written + asked];
  }
  return {
    statements: Math.min(batches, asks / LAST) + beats / LAST,
    meters: written / LAST,
    waits: waiting / calls,
  };
}

/** Few keys have most of the calls. */
function zipf(many: number): (at: number) => number {
  const sums: number[] = [];
  let sum = 0;
  for (let i = 0; i < many; i++) sums.push((sum += 1 / (i + 1)));
  return (at) => {
    let [low, high] = [0, many - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! < at * sum) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

type Law = readonly [law: string, of: readonly string[], holds: (...all: Reckoned[]) => boolean];

/** Claims that the table shows. */
const LAWS: readonly Law[] = [
  ["10 nodes are carried by one core, exact", ["10 nodes, exact"], (a) => a.cores < 1.5],
  ["30 nodes are carried by four, exact", ["30 nodes, exact"], (a) => a.cores < 4],
  ["1,000 nodes are too many for one database", ["1,000 nodes, exact"], (a) => a.cores > 16],
  [
    "slices with random balancing spare little at 30 nodes",
    ["30 nodes, leases, any node", "30 nodes, exact"],
    (sliced, exact) => sliced.cores > 0.6 * exact.cores,
  ],
  [
    "slices with few nodes a key spare more than with any node",
    ["30 nodes, leases, 4 nodes per key", "30 nodes, leases, any node"],
    (few, any) => few.cores < any.cores,
  ],
  [
    "slices with 4 nodes a key spare most of the statements at 1,000 nodes",
    ["1,000 nodes, leases, 4 nodes per key", "1,000 nodes, exact"],
    (sliced, exact) => sliced.statements * 4 < exact.statements,
  ],
  ["cells carry 1,000 nodes, exact", ["25 cells of 40 nodes, exact"], (a) => a.cores < 2],
];

/** Violated claims. Claims about fleets that are not in the table are not checked. */
export function broken(table: ReadonlyMap<string, Reckoned>): string[] {
  return LAWS.flatMap(([law, names, holds]) => {
    const all = names.flatMap((name) => table.get(name) ?? []);
    return all.length < names.length || holds(...all) ? [] : [law];
  });
}

/** `most`: larger fleets are omitted. */
export const fleetModel = (
  costs: Costs,
  seed: number,
  most = Infinity,
): ReadonlyMap<string, Reckoned> =>
  new Map(
    WORLDS.filter(({ nodes }) => nodes <= most).map((world) => [
      world.name,
      reckoned(world, costs, seed),
    ]),
  );

/** As measured. The rig uses other values. */
export const MEASURED: Costs = { statement: 150, meter: 8, shipped: 10.9, batch: 3 };

const thousands = (value: number) => Math.round(value).toLocaleString("en-US");

/** Of the table. */
export const line = (name: string, { statements, meters, waits, cores }: Reckoned): string =>
  `| ${name} | ${thousands(statements)} | ${thousands(meters)} | ${Math.round(waits * 100)}% | ${cores.toFixed(1)} |`;

export const rig: Rig = {
  options: { ...MEASURED, seed: 1 },
  async run({ statement, meter, shipped, batch, seed }, say) {
    const costs = {
      statement: Number(statement),
      meter: Number(meter),
      shipped: Number(shipped),
      batch: Number(batch),
    };
    const table = fleetModel(costs, Number(seed));
    say("| Fleet | Statements/s | Meter writes/s | Calls that wait | Database cores |");
    say("|---|---|---|---|---|");
    for (const [name, of] of table) say(line(name, of));
    return { wrong: broken(table), counts: { fleets: table.size }, seed: Number(seed) };
  },
};
