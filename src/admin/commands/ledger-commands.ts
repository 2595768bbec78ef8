// Commands to read the ledger: sums, rows, and verification. The same commands work on the control
// socket of a running gateway and directly on the store. Rows are never changed. A correction is an
// additional row.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { parseDecimal } from "../../money/decimal.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { LedgerState } from "../../plugin/store/ledger-maintenance.ts";
import type { Problem } from "../../plugin/problem.ts";
import type {
  LedgerEntry,
  LedgerQuery,
  ResultPage,
  Store,
  StoreCommand,
  LedgerTotal,
} from "../../plugin/store/store.ts";
import {
  cacheDimensions,
  changeDimensions,
  changeLabels,
  NO_CHANGES,
  summarizeCaches,
  summarizeChanges,
  type CacheGroup,
  type CacheUse,
  type PromptChanges,
} from "./cache-use.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import {
  type KnownNames,
  resolveKeyId,
  assertKnownNames,
  keyNamesOf,
  parseTimeZone,
} from "./ledger-names.ts";
import type { InputOf } from "../schema/command-specs.ts";
import type { DIMENSIONS } from "../schema/usage-command-specs.ts";
import { zoneClock } from "../../lib/time/time-zone.ts";
import { fail } from "../../model/error.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";

export type Dimension = (typeof DIMENSIONS)[number];

/** A sum, with the number of calls that are only estimated. */
export interface UsageSum extends LedgerTotal {
  readonly estimated: number;
}

export interface UsageSums {
  readonly rows: readonly UsageSum[];
  /** Total of all calls. A call with two labels is in two rows but counts once in this total. */
  readonly total: UsageSum;
  /** Names of the keys in `rows`, by their IDs. */
  readonly keyNames: Readonly<Record<string, string>>;
}

/** Use of prompt caches by one group, with the changes that prevent it. */
export type CacheRow = CacheUse & PromptChanges;

/** Use of prompt caches by group. */
export interface CacheReport {
  /** Name of the grouping. */
  readonly by: string;
  readonly rows: readonly CacheRow[];
  /** Names of the keys in `rows`, by their IDs. */
  readonly keyNames: Readonly<Record<string, string>>;
}

export interface VerifyResult {
  readonly problems: readonly Problem[];
  /** Whether the store keeps a hash chain. */
  readonly isVerifiable: boolean;
  /**
   * Newest hash. An operator who stores this hash can later verify that the ledger was not
   * truncated.
   */
  readonly head: { readonly seq: number; readonly hash: string } | undefined;
  /** Whether the requested hash is still in the ledger. */
  readonly containsHash: boolean | undefined;
  /**
   * Time of the oldest row, and the number of older rows that were compacted. Null if the store
   * does not report it.
   */
  readonly ledgerState: LedgerState | null;
}

/** Maximum number of rows per page. */
const MAX_ROWS = 1_000;

type Adjust = Extract<StoreCommand, { do: "adjust" }>;

/**
 * @param adjust Writes a correction. Resolves when it is durable.
 * @param targets Returns names that exist even if the ledger has no rows with them.
 */
export function createLedgerCommands(
  store: Store & Commands,
  adjust: (command: Adjust) => Promise<unknown>,
  targets: () => KnownNames = () => ({}),
) {
  return withInputChecks({
    "usage.series": async ({
      by = "model",
      step = "day",
      most,
      ...input
    }): Promise<UsageSeries> => {
      const zone = parseTimeZone(input.tz);
      const steps = listSteps({ from: input.from, to: input.to, step, zone });
      const from = Math.min(...steps.values());
      const query = { ...(await toLedgerQuery(input, store)), from: input.from ?? from };
      const rows = await readSums(store, { ...query, by: [by, step], zone });
      const names = by === "key" ? await keyNamesOf(rows, store) : {};
      return usageSeries({ rows, names }, by, step, steps, most ?? 10);
    },
    "ledger.totals": async (input, giver): Promise<UsageSums> => {
      const zone = parseTimeZone(input.tz);
      const query = await toLedgerQuery(input, store);
      const { by = ["key"] } = input;
      const once = !by.includes("label") && !by.includes("account");
      const [rows, [total]] = await Promise.all([
        readSums(store, { ...query, by, zone }),
        once ? [] : readSums(store, { ...query, by: [] }),
      ]);
      if (rows.length === 0) await assertKnownNames(query, store, targets(), giver?.account);
      const names = by.includes("key") ? await keyNamesOf(rows, store) : {};
      return { rows, total: total ?? sumRows(rows), keyNames: names };
    },
    "ledger.caches": async (input, giver): Promise<CacheReport> => {
      const { by = "key", scope } = input;
      if (scope !== undefined && input.by !== undefined)
        fail("invalid", "scope and by cannot be used together.", { code: "bad_input" });
      const group: CacheGroup =
        scope === undefined ? { dimension: by } : { dimension: "label", prefix: `${scope}=` };
      const query = await toLedgerQuery(input, store);
      const [sums, changes] = await Promise.all([
        store.sumEntries({ ...query, by: cacheDimensions(group) }),
        readChanges(store, query, group),
      ]);
      if (sums.length === 0) await assertKnownNames(query, store, targets(), giver?.account);
      return {
        by: scope ?? by,
        rows: summarizeCaches(sums, group).map((row) => ({
          ...row,
          ...(changes.get(row.name) ?? NO_CHANGES),
        })),
        keyNames: group.dimension === "key" ? await keyNamesOf(sums, store) : {},
      };
    },
    "ledger.entries": async (input): Promise<ResultPage<LedgerEntry>> =>
      store.listEntries(await toLedgerQuery(input, store), {
        after: input.after,
        limit: Math.min(input.limit ?? 100, MAX_ROWS),
      }),
    /** The correction counts toward the budgets, in the windows in which the call began. */
    "ledger.adjust": async ({ attempt, usd, reason }) => {
      const costNano = parseDecimal(usd, 9);
      await adjust({ do: "adjust", at: wallClock(), attempt, costNano, reason, actor: "operator" });
      return { attempt, costNano };
    },
    "ledger.verify": async ({ hash }): Promise<VerifyResult> => {
      const { head, contains } = store.commands ?? {};
      return {
        problems: (await store.verify?.()) ?? [],
        isVerifiable: store.verify !== undefined,
        head: (await head?.run({})) as VerifyResult["head"],
        containsHash: hash === undefined ? undefined : ((await contains?.run({ hash })) as boolean),
        ledgerState: (await store.maintenance?.readState?.()) ?? null,
      };
    },
  });
}

/** Reads the changes of what earlier requests sent, by group. */
async function readChanges(
  store: Store,
  query: LedgerQuery,
  group: CacheGroup,
): Promise<ReadonlyMap<string, PromptChanges>> {
  const sums = await Promise.all(
    changeLabels(query).map((label) =>
      store.sumEntries({ ...query, label, by: changeDimensions(group) }),
    ),
  );
  return summarizeChanges(sums.flat(), group);
}

const NO_SUM: UsageSum = { by: {}, calls: 0, usage: {}, costNano: 0n, unpriced: 0, estimated: 0 };

/**
 * Sums rows, in which each call occurs once. Fractions are rounding errors of at most one
 * millionth.
 */
function sumRows(rows: readonly UsageSum[]): UsageSum {
  const usage: Record<string, number> = {};
  const all = { ...NO_SUM, usage };
  for (const row of rows) {
    all.calls += row.calls;
    all.costNano += row.costNano;
    all.unpriced += row.unpriced;
    all.estimated += row.estimated;
    for (const [unit, count = 0] of Object.entries(row.usage)) {
      const sum = (usage[unit] ?? 0) + count;
      usage[unit] = Number.isInteger(sum) ? sum : Math.round(sum * 1e6) / 1e6;
    }
  }
  return all;
}

/** A store that does not count estimates is queried separately for them. */
async function readSums(
  store: Store,
  query: Parameters<Store["sumEntries"]>[0],
): Promise<UsageSum[]> {
  const all = await store.sumEntries(query);
  if (all.every(({ estimated }) => estimated !== undefined)) return all as UsageSum[];
  const guessed = await store.sumEntries({ ...query, state: "estimated" });
  const name = (total: LedgerTotal) => JSON.stringify(query.by.map((each) => total.by[each]));
  const estimated = new Map(guessed.map((total) => [name(total), total.calls]));
  return all.map((total) => ({ ...total, estimated: estimated.get(name(total)) ?? 0 }));
}

type EntriesInput = Omit<InputOf<"ledger.entries">, "after" | "limit">;

const toLedgerQuery = async (
  { key, ...rest }: EntriesInput,
  store: Store,
): Promise<LedgerQuery> => {
  const { account, attempt, upstreamId, from, to, state } = rest;
  const { provider, model, label, credential, frontend, outcome } = rest;
  const where = { provider, model, label, credential, frontend, outcome };
  const id = await resolveKeyId(key, store);
  return { key: id, account, attempt, upstreamId, from, to, state, ...where };
};

// Returns usage and cost per hour or day: ledger sums in the form that a chart needs.

/** One line of the chart, with a value for each step. */
interface UsageCurve {
  /**
   * Empty for calls without a value in this dimension. "(others)" for all lines that are not among
   * the largest.
   */
  readonly name: string;
  readonly calls: readonly number[];
  readonly costNano: readonly bigint[];
  readonly tokens: readonly number[];
}

interface UsageSeries {
  /** Start of each step, in Unix milliseconds. */
  readonly times: readonly number[];
  /** Largest first, by cost and then by calls. */
  readonly series: readonly UsageCurve[];
  /** Names of keys, by their IDs. */
  readonly names: Readonly<Record<string, string>>;
}

/** Maximum number of steps per chart. */
const MAX_STEPS = 1_500;
const OTHERS_NAME = "(others)";
const HOUR_MS = 3_600_000;

interface StepRange {
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly step: "hour" | "day";
  readonly zone: string | undefined;
}

/** Returns the start of each step, by its name in the sums. Throws if there are too many steps. */
function listSteps({ from, to, step, zone }: StepRange): ReadonlyMap<string, number> {
  const clock = zoneClock(zone);
  const end = to ?? wallClock() + 1;
  const begin = from ?? end - (step === "day" ? 30 * 24 : 24) * HOUR_MS;
  const steps = new Map<string, number>();
  // No step is shorter than 15 minutes, and every clock change is at a multiple of 15 minutes.
  const least = step === "day" ? HOUR_MS : HOUR_MS / 4;
  for (let at = begin; at < end; at += least) {
    const name = clock[step](at);
    if (steps.has(name)) continue;
    if (steps.size === MAX_STEPS)
      fail(
        "invalid",
        `The time range has more than ${MAX_STEPS} ${step}s. Choose a shorter range.`,
        {
          code: "bad_input",
          param: "/from",
        },
      );
    steps.set(name, step === "day" ? clock.parseLocalTime(name) : clock.hourStart(at));
  }
  const last = clock[step](end - 1);
  if (end > begin && !steps.has(last)) steps.set(last, clock.hourStart(end - 1));
  return steps;
}

interface MutableCurve {
  readonly name: string;
  readonly calls: number[];
  readonly costNano: bigint[];
  readonly tokens: number[];
}

/**
 * @param by Dimension of the lines.
 * @param maxCurves Maximum number of lines. The others are merged into one.
 */
function usageSeries(
  { rows, names }: { rows: readonly LedgerTotal[] } & Pick<UsageSeries, "names">,
  by: string,
  step: "hour" | "day",
  steps: ReadonlyMap<string, number>,
  maxCurves: number,
): UsageSeries {
  const times = [...steps.values()];
  const at = new Map([...steps.keys()].map((name, i) => [name, i]));
  const sizes = new Map<string, { cost: bigint; calls: number }>();
  for (const row of rows) {
    const name = row.by[by] ?? "";
    const size = sizes.get(name) ?? { cost: 0n, calls: 0 };
    size.cost += row.costNano;
    size.calls += row.calls;
    sizes.set(name, size);
  }
  const sorted = [...sizes].sort(([, a], [, b]) =>
    a.cost === b.cost ? b.calls - a.calls : a.cost < b.cost ? 1 : -1,
  );
  const own = new Set(sorted.slice(0, maxCurves).map(([name]) => name));
  const lines = new Map<string, MutableCurve>();
  const order = sorted.map(([name]) => (own.has(name) ? name : OTHERS_NAME));
  for (const name of order) if (!lines.has(name)) lines.set(name, createCurve(name, times.length));
  for (const row of rows) {
    const i = at.get(row.by[step] ?? "");
    const name = row.by[by] ?? "";
    if (i !== undefined) addTotal(lines.get(own.has(name) ? name : OTHERS_NAME)!, i, row);
  }
  return { times, series: [...lines.values()], names };
}

const createCurve = (name: string, steps: number): MutableCurve => ({
  name,
  calls: Array<number>(steps).fill(0),
  costNano: Array<bigint>(steps).fill(0n),
  tokens: Array<number>(steps).fill(0),
});

function addTotal(line: MutableCurve, i: number, { calls, costNano, usage }: LedgerTotal): void {
  line.calls[i]! += calls;
  line.costNano[i]! += costNano;
  line.tokens[i]! += inputTokens(usage) + outputTokens(usage);
}
