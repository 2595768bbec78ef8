// Gauges that are read at the time of a scrape: gateway state, expiry dates from the catalog, and
// remaining budgets.
import type {
  Context,
  ListedModel,
  ProcessStats,
  GatewayStats,
  CooldownState,
} from "tollgate/plugin";
import { READ_FAMILIES, type Family } from "./families.ts";
import { MAX_SERIES } from "./series.ts";
import type { MetricsTally } from "./tally.ts";
import type { Sample, MetricsSink } from "./metrics-sink.ts";

const SECOND_MS = 1_000;
const limitSeries = (samples: readonly Sample[]): readonly Sample[] => samples.slice(0, MAX_SERIES);
const singleSample = (value: number): readonly Sample[] => [[[], value]];
const optionalSample = (value: number | undefined): readonly Sample[] =>
  value === undefined ? [] : singleSample(value);

export function writeGatewayGauges(out: MetricsSink, of: GatewayStats, tally: MetricsTally): void {
  const { expected, responded } = of.processes;
  out.writeSamples(READ_FAMILIES.build, [[[of.version, process.version], 1]]);
  out.writeSamples(READ_FAMILIES.workers, singleSample(Math.max(1, expected - 1)));
  out.writeSamples(READ_FAMILIES.unresponsive, singleSample(expected - responded));
  out.writeSamples(
    READ_FAMILIES.inFlight,
    limitSeries(
      Object.entries(of.inFlightByFrontend).map(([frontend, count]) => [[frontend], count]),
    ),
  );
  out.writeSamples(READ_FAMILIES.generation, singleSample(of.generation.number));
  out.writeSamples(READ_FAMILIES.reloadOk, singleSample(tally.lastReload === false ? 0 : 1));
  out.writeSamples(READ_FAMILIES.reloadAt, singleSample(of.generation.at / SECOND_MS));
  out.writeSamples(READ_FAMILIES.cooldown, limitSeries(cooldownSamples(of, tally)));
  out.writeSamples(READ_FAMILIES.breakers, limitSeries(breakerSamples(of)));
  out.writeSamples(
    READ_FAMILIES.cooldownEnd,
    limitSeries(
      maxPerCredential(
        of,
        ({ reason }) => reason,
        ({ until }) => until / SECOND_MS,
      ),
    ),
  );
  out.writeSamples(
    READ_FAMILIES.rejecting,
    limitSeries(
      maxPerCredential(
        of,
        () => undefined,
        ({ rejectsRequests }) => (rejectsRequests ? 1 : 0),
      ),
    ),
  );
  out.writeSamples(
    READ_FAMILIES.pluginUnreachable,
    limitSeries(of.unreachable.map((each) => [[each.plugin, each.requests], each.processes])),
  );
  out.writeSamples(
    READ_FAMILIES.sockets,
    limitSeries(
      of.pools.flatMap(({ origin, connected, free, running, queued }): Sample[] => [
        [[origin, "connected"], connected],
        [[origin, "free"], free],
        [[origin, "running"], running],
        [[origin, "queued"], queued],
      ]),
    ),
  );
  out.writeSamples(READ_FAMILIES.ready, singleSample(of.state === "ready" ? 1 : 0));
  out.writeSamples(
    READ_FAMILIES.certificateExpires,
    limitSeries(
      of.certificates.map(({ listener, expiresAt }) => [[listener], expiresAt / SECOND_MS]),
    ),
  );
  writeLedgerGauges(out, of.ledger);
  writeFleetGauges(out, of.fleet);
  writeModelListGauges(out, of);
  out.writeSamples(
    READ_FAMILIES.dropped,
    limitSeries(Object.entries(of.droppedRecords).map(([observer, count]) => [[observer], count])),
  );
  for (const each of PROCESS_FAMILIES)
    out.writeSamples(each.family, limitSeries(of.perProcess.flatMap(each.of)));
}

/**
 * Returns the cooldowns per credential. Credentials that were used and are not in cooldown are
 * included with 0.
 */
function cooldownSamples(of: GatewayStats, tally: MetricsTally): readonly Sample[] {
  const rests = new Map<string, number>();
  const names = new Map(tally.credentials);
  for (const { provider, credential, state } of of.cooldowns) {
    if (state === "recovering") continue;
    const key = `${provider}\n${credential}`;
    names.set(key, [provider, credential]);
    rests.set(key, (rests.get(key) ?? 0) + 1);
  }
  return Array.from(names, ([key, labels]): Sample => [labels, rests.get(key) ?? 0]);
}

function breakerSamples({ cooldowns: all }: GatewayStats): readonly Sample[] {
  const counts = new Map<string, readonly [labels: readonly string[], count: number]>();
  for (const { provider, credential, state } of all) {
    const key = `${provider}\n${credential}\n${state}`;
    counts.set(key, [[provider, credential, state], (counts.get(key)?.[1] ?? 0) + 1]);
  }
  return [...counts.values()];
}

/**
 * Returns the largest value among each credential's cooldowns, with one additional label.
 * Recovering targets are not in cooldown.
 */
function maxPerCredential(
  { cooldowns: all }: GatewayStats,
  label: (of: CooldownState) => string | undefined,
  value: (of: CooldownState) => number,
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

function writeLedgerGauges(
  out: MetricsSink,
  { ok, queue, commits, size }: GatewayStats["ledger"],
): void {
  out.writeSamples(READ_FAMILIES.ledgerUp, singleSample(ok ? 1 : 0));
  out.writeSamples(READ_FAMILIES.ledgerQueue, singleSample(queue));
  out.writeDistribution(READ_FAMILIES.commitSeconds, {
    count: commits.count,
    sum: commits.sumMs / SECOND_MS,
    buckets: commits.buckets.map(({ ms, count }) => [ms / SECOND_MS, count]),
  });
  out.writeSamples(READ_FAMILIES.ledgerBytes, optionalSample(size?.bytes));
  out.writeSamples(READ_FAMILIES.diskFree, optionalSample(size?.freeBytes));
  const oldest = size?.oldestAt;
  out.writeSamples(
    READ_FAMILIES.oldest,
    optionalSample(oldest === undefined ? undefined : oldest / SECOND_MS),
  );
}

function writeFleetGauges(out: MetricsSink, of: GatewayStats["fleet"]): void {
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / SECOND_MS);
  const states = of && (["live", "left", "dead"] as const);
  out.writeSamples(
    READ_FAMILIES.fleetNodes,
    limitSeries((states ?? []).map((state) => [[state], of![state]])),
  );
  out.writeSamples(READ_FAMILIES.clockAhead, optionalSample(seconds(of?.clockAheadMs)));
  out.writeSamples(READ_FAMILIES.storeLag, optionalSample(seconds(of?.syncLagMs)));
}

/**
 * Writes the age of each provider's model list. If a provider has several credentials, the oldest
 * list counts.
 */
function writeModelListGauges(out: MetricsSink, { modelLists: all }: GatewayStats): void {
  const at = new Map<string, number>();
  const failures = new Map<string, number>();
  for (const { provider, lastSuccessAt, failures: failed } of all) {
    failures.set(provider, Math.max(failures.get(provider) ?? 0, failed));
    if (lastSuccessAt !== undefined)
      at.set(provider, Math.min(at.get(provider) ?? Infinity, lastSuccessAt));
  }
  out.writeSamples(
    READ_FAMILIES.listAt,
    limitSeries(Array.from(at, ([provider, ms]) => [[provider], ms / SECOND_MS])),
  );
  out.writeSamples(
    READ_FAMILIES.listFailures,
    limitSeries(Array.from(failures, ([provider, count]) => [[provider], count])),
  );
}

const PROCESS_FAMILIES: readonly {
  readonly family: Family;
  readonly of: (one: ProcessStats) => readonly Sample[];
}[] = [
  { family: READ_FAMILIES.cpu, of: ({ pid, cpu }) => [[[`${pid}`], cpu.user + cpu.system]] },
  { family: READ_FAMILIES.rss, of: ({ pid, memory }) => [[[`${pid}`], memory.rss]] },
  {
    family: READ_FAMILIES.started,
    of: ({ pid, startedAt }) => [[[`${pid}`], startedAt / SECOND_MS]],
  },
  {
    family: READ_FAMILIES.files,
    of: ({ pid, openFiles }) => (openFiles === undefined ? [] : [[[`${pid}`], openFiles]]),
  },
  {
    family: READ_FAMILIES.loopDelay,
    of: ({ pid, loopDelayMs: { mean, p99, max } }) => [
      [[`${pid}`, "mean"], mean / SECOND_MS],
      [[`${pid}`, "p99"], p99 / SECOND_MS],
      [[`${pid}`, "max"], max / SECOND_MS],
    ],
  },
  { family: READ_FAMILIES.heapUsed, of: ({ pid, memory }) => [[[`${pid}`], memory.heapUsed]] },
  { family: READ_FAMILIES.heapTotal, of: ({ pid, memory }) => [[[`${pid}`], memory.heapTotal]] },
  { family: READ_FAMILIES.external, of: ({ pid, memory }) => [[[`${pid}`], memory.external]] },
  {
    family: READ_FAMILIES.gcSeconds,
    of: ({ pid, gc }) =>
      Object.entries(gc).map(([kind, { seconds }]) => [[`${pid}`, kind], seconds]),
  },
  {
    family: READ_FAMILIES.gcRuns,
    of: ({ pid, gc }) => Object.entries(gc).map(([kind, { count }]) => [[`${pid}`, kind], count]),
  },
];

export function writeBudgetGauges(out: MetricsSink, tally: MetricsTally, now: number): void {
  const all = tally.budgets.mostUsed(now);
  out.writeSamples(
    READ_FAMILIES.budgetLimit,
    all.map(({ scope, per, max }) => [[scope, per], max]),
  );
  out.writeSamples(
    READ_FAMILIES.budgetUsed,
    all.map(({ scope, per, used }) => [[scope, per], used]),
  );
  out.writeSamples(
    READ_FAMILIES.budgetResets,
    all
      .filter(({ per }) => per !== "total")
      .map(({ scope, per, resetsAt }) => [[scope, per], resetsAt / SECOND_MS]),
  );
}

/**
 * Dates change only with a config generation or a model list, and listing all models is expensive.
 */
const DATES_TTL_MS = 60_000;

export class ExpiryGauges {
  readonly #catalog: Context["catalog"];
  #readAt = -Infinity;
  #policyExpirySamples: readonly Sample[] = [];
  #modelRetirementSamples: readonly Sample[] = [];

  constructor(catalog: Context["catalog"]) {
    this.#catalog = catalog;
  }

  write(out: MetricsSink): void {
    const now = performance.now();
    if (now - this.#readAt > DATES_TTL_MS) {
      this.#readAt = now;
      const models = this.#catalog.list({});
      this.#policyExpirySamples = limitSeries(policyExpiries(models));
      this.#modelRetirementSamples = limitSeries(modelRetirements(models));
    }
    out.writeSamples(READ_FAMILIES.policyExpires, this.#policyExpirySamples);
    out.writeSamples(READ_FAMILIES.modelRetires, this.#modelRetirementSamples);
  }
}

/** Returns the earliest expiry date of each provider's policy evidence. */
function policyExpiries(models: readonly ListedModel[]): readonly Sample[] {
  const first = new Map<string, number>();
  for (const { provider, policy } of models) {
    const at = parseDateSeconds(policy.expires);
    if (at !== undefined) first.set(provider, Math.min(first.get(provider) ?? Infinity, at));
  }
  return Array.from(first, ([provider, at]): Sample => [[provider], at / SECOND_MS]);
}

/** Returns the retirement dates, earliest first. */
function modelRetirements(models: readonly ListedModel[]): readonly Sample[] {
  const all = models.flatMap(({ id, retires }) => {
    const at = parseDateSeconds(retires);
    return at === undefined ? [] : [{ id, at }];
  });
  return all.toSorted((a, b) => a.at - b.at).map(({ id, at }): Sample => [[id], at / SECOND_MS]);
}

function parseDateSeconds(date: string | undefined): number | undefined {
  const at = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(at) ? undefined : at;
}
