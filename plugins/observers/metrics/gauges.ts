// What is read in the moment it is asked for: how the gateway is, what the catalogue knows of dates, what budgets have left.
import type {
  Context,
  ListedModel,
  ProcessReading,
  Readings,
  RestingReading,
} from "tollgate/plugin";
import { READ, type Family } from "./families.ts";
import { MOST_SERIES } from "./series.ts";
import type { Tally } from "./tally.ts";
import type { Sample, Sink } from "./sink.ts";

const SECOND_MS = 1_000;
const bounded = (samples: readonly Sample[]): readonly Sample[] => samples.slice(0, MOST_SERIES);
const one = (value: number): readonly Sample[] => [[[], value]];
const known = (value: number | undefined): readonly Sample[] =>
  value === undefined ? [] : one(value);

export function gateway(out: Sink, of: Readings, tally: Tally): void {
  const { there, answered } = of.processes;
  out.read(READ.build, [[[of.version, process.version], 1]]);
  out.read(READ.workers, one(Math.max(1, there - 1)));
  out.read(READ.unanswered, one(there - answered));
  out.read(
    READ.inFlight,
    bounded(Object.entries(of.inFlightOf).map(([frontend, count]) => [[frontend], count])),
  );
  out.read(READ.generation, one(of.generation.number));
  out.read(READ.reloadOk, one(tally.lastReload === false ? 0 : 1));
  out.read(READ.reloadAt, one(of.generation.at / SECOND_MS));
  out.read(READ.resting, bounded(resting(of, tally)));
  out.read(READ.breakers, bounded(breakers(of)));
  out.read(
    READ.cooldownEnd,
    bounded(
      largest(
        of,
        ({ why }) => why,
        ({ until }) => until / SECOND_MS,
      ),
    ),
  );
  out.read(
    READ.refusing,
    bounded(
      largest(
        of,
        () => undefined,
        ({ refuses }) => (refuses ? 1 : 0),
      ),
    ),
  );
  out.read(
    READ.pluginUnreachable,
    bounded(of.unreachable.map((each) => [[each.plugin, each.requests], each.processes])),
  );
  out.read(
    READ.sockets,
    bounded(
      of.pools.flatMap(({ origin, connected, free, running, queued }): Sample[] => [
        [[origin, "connected"], connected],
        [[origin, "free"], free],
        [[origin, "running"], running],
        [[origin, "queued"], queued],
      ]),
    ),
  );
  out.read(READ.ready, one(of.state === "ready" ? 1 : 0));
  out.read(
    READ.certificateExpires,
    bounded(of.certificates.map(({ listener, expiresAt }) => [[listener], expiresAt / SECOND_MS])),
  );
  ledger(out, of.ledger);
  fleet(out, of.fleet);
  lists(out, of);
  out.read(
    READ.dropped,
    bounded(Object.entries(of.dropped).map(([observer, count]) => [[observer], count])),
  );
  for (const each of PROCESS) out.read(each.family, bounded(of.each.flatMap(each.of)));
}

/** What has been tried and does not rest is known too. */
function resting(of: Readings, tally: Tally): readonly Sample[] {
  const rests = new Map<string, number>();
  const names = new Map(tally.credentials);
  for (const { provider, credential, state } of of.resting) {
    if (state === "recovering") continue;
    const key = `${provider}\n${credential}`;
    names.set(key, [provider, credential]);
    rests.set(key, (rests.get(key) ?? 0) + 1);
  }
  return Array.from(names, ([key, labels]): Sample => [labels, rests.get(key) ?? 0]);
}

function breakers({ resting: all }: Readings): readonly Sample[] {
  const counts = new Map<string, readonly [labels: readonly string[], count: number]>();
  for (const { provider, credential, state } of all) {
    const key = `${provider}\n${credential}\n${state}`;
    counts.set(key, [[provider, credential, state], (counts.get(key)?.[1] ?? 0) + 1]);
  }
  return [...counts.values()];
}

/** The largest value of each credential's cooldowns, with one more label. Targets that work again are not in cooldown. */
function largest(
  { resting: all }: Readings,
  label: (of: RestingReading) => string | undefined,
  value: (of: RestingReading) => number,
): readonly Sample[] {
  const samples = new Map<string, readonly [labels: readonly string[], value: number]>();
  for (const one of all) {
    if (one.state === "recovering") continue;
    const more = label(one);
    const labels = [one.provider, one.credential, ...(more === undefined ? [] : [more])];
    const key = labels.join("\n");
    samples.set(key, [labels, Math.max(value(one), samples.get(key)?.[1] ?? 0)]);
  }
  return [...samples.values()];
}

function ledger(out: Sink, { ok, queue, commits, size }: Readings["ledger"]): void {
  out.read(READ.ledgerUp, one(ok ? 1 : 0));
  out.read(READ.ledgerQueue, one(queue));
  out.distribution(READ.commitSeconds, {
    count: commits.count,
    sum: commits.sumMs / SECOND_MS,
    upTo: commits.upTo.map(({ ms, count }) => [ms / SECOND_MS, count]),
  });
  out.read(READ.ledgerBytes, known(size?.bytes));
  out.read(READ.diskFree, known(size?.freeBytes));
  const oldest = size?.oldestAt;
  out.read(READ.oldest, known(oldest === undefined ? undefined : oldest / SECOND_MS));
}

function fleet(out: Sink, of: Readings["fleet"]): void {
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / SECOND_MS);
  const states = of && (["live", "left", "dead"] as const);
  out.read(READ.fleetNodes, bounded((states ?? []).map((state) => [[state], of![state]])));
  out.read(READ.clockAhead, known(seconds(of?.aheadMs)));
  out.read(READ.storeLag, known(seconds(of?.lagMs)));
}

/** Of several credentials the one whose list is oldest. */
function lists(out: Sink, { lists: all }: Readings): void {
  const at = new Map<string, number>();
  const failures = new Map<string, number>();
  for (const { provider, lastOk, failures: failed } of all) {
    failures.set(provider, Math.max(failures.get(provider) ?? 0, failed));
    if (lastOk !== undefined) at.set(provider, Math.min(at.get(provider) ?? Infinity, lastOk));
  }
  out.read(READ.listAt, bounded(Array.from(at, ([provider, ms]) => [[provider], ms / SECOND_MS])));
  out.read(
    READ.listFailures,
    bounded(Array.from(failures, ([provider, count]) => [[provider], count])),
  );
}

const PROCESS: readonly {
  readonly family: Family;
  readonly of: (one: ProcessReading) => readonly Sample[];
}[] = [
  { family: READ.cpu, of: ({ pid, cpu }) => [[[`${pid}`], cpu.user + cpu.system]] },
  { family: READ.rss, of: ({ pid, memory }) => [[[`${pid}`], memory.rss]] },
  { family: READ.started, of: ({ pid, startedAt }) => [[[`${pid}`], startedAt / SECOND_MS]] },
  {
    family: READ.files,
    of: ({ pid, openFiles }) => (openFiles === undefined ? [] : [[[`${pid}`], openFiles]]),
  },
  {
    family: READ.loopDelay,
    of: ({ pid, loopDelayMs: { mean, p99, max } }) => [
      [[`${pid}`, "mean"], mean / SECOND_MS],
      [[`${pid}`, "p99"], p99 / SECOND_MS],
      [[`${pid}`, "max"], max / SECOND_MS],
    ],
  },
  { family: READ.heapUsed, of: ({ pid, memory }) => [[[`${pid}`], memory.heapUsed]] },
  { family: READ.heapTotal, of: ({ pid, memory }) => [[[`${pid}`], memory.heapTotal]] },
  { family: READ.external, of: ({ pid, memory }) => [[[`${pid}`], memory.external]] },
  {
    family: READ.gcSeconds,
    of: ({ pid, gc }) =>
      Object.entries(gc).map(([kind, { seconds }]) => [[`${pid}`, kind], seconds]),
  },
  {
    family: READ.gcRuns,
    of: ({ pid, gc }) => Object.entries(gc).map(([kind, { count }]) => [[`${pid}`, kind], count]),
  },
];

export function budgets(out: Sink, tally: Tally, now: number): void {
  const all = tally.budgets.nearest(now);
  out.read(
    READ.budgetLimit,
    all.map(({ scope, per, max }) => [[scope, per], max]),
  );
  out.read(
    READ.budgetUsed,
    all.map(({ scope, per, used }) => [[scope, per], used]),
  );
  out.read(
    READ.budgetResets,
    all
      .filter(({ per }) => per !== "total")
      .map(({ scope, per, resetsAt }) => [[scope, per], resetsAt / SECOND_MS]),
  );
}

/** Dates change with a generation or a list; making all models is dear. */
const DATES_MS = 60_000;

export class Dates {
  readonly #catalogue: Context["catalogue"];
  #readAt = -Infinity;
  #expires: readonly Sample[] = [];
  #retires: readonly Sample[] = [];

  constructor(catalogue: Context["catalogue"]) {
    this.#catalogue = catalogue;
  }

  write(out: Sink): void {
    const now = performance.now();
    if (now - this.#readAt > DATES_MS) {
      this.#readAt = now;
      const models = this.#catalogue.list({});
      this.#expires = bounded(expiring(models));
      this.#retires = bounded(retiring(models));
    }
    out.read(READ.policyExpires, this.#expires);
    out.read(READ.modelRetires, this.#retires);
  }
}

/** Of all that is known of a provider, what has to be read again first. */
function expiring(models: readonly ListedModel[]): readonly Sample[] {
  const first = new Map<string, number>();
  for (const { provider, policy } of models) {
    const at = dateOf(policy.expires);
    if (at !== undefined) first.set(provider, Math.min(first.get(provider) ?? Infinity, at));
  }
  return Array.from(first, ([provider, at]): Sample => [[provider], at / SECOND_MS]);
}

/** The next to go first. */
function retiring(models: readonly ListedModel[]): readonly Sample[] {
  const all = models.flatMap(({ id, retires }) => {
    const at = dateOf(retires);
    return at === undefined ? [] : [{ id, at }];
  });
  return all.toSorted((a, b) => a.at - b.at).map(({ id, at }): Sample => [[id], at / SECOND_MS]);
}

function dateOf(date: string | undefined): number | undefined {
  const at = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(at) ? undefined : at;
}
