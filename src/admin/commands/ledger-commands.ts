// The ledger, as an operator reads it: sums, rows, and whether they are what was written. The same on the control socket of
// a running gateway and on the store itself. Rows are never changed: a correction is one more.
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
import { listSteps, type UsageSeries, usageSeries } from "./usage-series.ts";

export type Dimension = (typeof DIMENSIONS)[number];

/** A sum, with how many of its calls are only estimates. */
export interface UsageSum extends LedgerTotal {
  readonly estimated: number;
}

export interface UsageSums {
  readonly rows: readonly UsageSum[];
  /** Of all of it: a call with two labels is in two rows, and here once. */
  readonly total: UsageSum;
  /** What people call the keys of `rows`, by their ids. */
  readonly keyNames: Readonly<Record<string, string>>;
}

export interface VerifyResult {
  readonly problems: readonly Problem[];
  /** Whether the store keeps a chain of hashes at all. */
  readonly isVerifiable: boolean;
  /** The newest hash: an operator who notes it down can tell later whether the ledger was shortened. */
  readonly head: { readonly seq: number; readonly hash: string } | undefined;
  /** Whether the hash that was asked about is still in it. */
  readonly containsHash: boolean | undefined;
  /** How far back rows go, and for how many older ones sums stand; null: the store does not say. */
  readonly ledgerState: LedgerState | null;
}

/** Rows of one page. */
const MAX_ROWS = 1_000;

type Adjust = Extract<StoreCommand, { do: "adjust" }>;

/** `adjust`: durable when it resolves. */
/** `around`: names that there are, though nothing may have been used of them. */
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
    "ledger.entries": async (input): Promise<ResultPage<LedgerEntry>> =>
      store.listEntries(await toLedgerQuery(input, store), {
        after: input.after,
        limit: Math.min(input.limit ?? 100, MAX_ROWS),
      }),
    /** Its budgets count it too, in the windows that the call began in. */
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

const NO_SUM: UsageSum = { by: {}, calls: 0, usage: {}, costNano: 0n, unpriced: 0, estimated: 0 };

/** Of rows in which each call is once. What lies behind the point are millionths at most. */
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

/** A store that does not count estimates is asked for them alone. */
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
