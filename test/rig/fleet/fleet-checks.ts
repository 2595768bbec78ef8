// Compares a fleet's ledger with the upstream's bill. It is like that of one gateway, except for
// calls of a node whose lease expired while it was alive: they were recovered, and the node
// corrected them once when it returned.
import type { LedgerEntry } from "tollgate/plugin";
import { SETTLE_TIMEOUT_MS } from "../../../src/pipeline/metering/settle-call.ts";
import { priced, type BilledRequest } from "../money/billing-upstream.ts";
import { judged } from "../ledger/crash-checks.ts";
import type { ClientResult } from "../load/traffic.ts";

const LATE = "settled late";

export interface Tight {
  /** Prefix of its requests' tags. */
  readonly tag: string;
  readonly worth: bigint;
}

/** The bill between two moments, by position. */
export interface Lapse {
  readonly from: number;
  readonly to: number;
}

/** `lapses`: data that a replica lacked when it became the primary. */
export function judgedFleet(
  entries: readonly LedgerEntry[],
  bill: readonly BilledRequest[],
  heard: readonly ClientResult[],
  budgets: readonly Tight[],
  lapses: readonly Lapse[] = [],
): string[] {
  const { rows, wrong } = corrected(entries, bill);
  const spent = new Map<string, { all: bigint; again: bigint }>();
  for (const [i, one] of bill.entries()) {
    const tag = one.tag.slice(0, one.tag.indexOf("."));
    const of = spent.get(tag) ?? { all: 0n, again: 0n };
    spent.set(tag, of);
    const cost = priced(one.usage());
    of.all += cost;
    if (lapses.some(({ from, to }) => from <= i && i < to)) of.again += cost;
  }
  for (const { tag, worth } of budgets) {
    const { all, again } = spent.get(tag) ?? { all: 0n, again: 0n };
    // Data that the new primary lacked may be spent again, and nothing else.
    if (all > worth + again)
      wrong.push(
        `budget ${tag}: ${all} billed, worth ${worth}, ${again} of it unknown for a moment`,
      );
  }
  const seqs = entries.map(({ seq }) => seq);
  if (seqs.some((seq, i) => i > 0 && seq <= seqs[i - 1]!))
    wrong.push("entries are not listed in the order of their numbers");
  return [...wrong, ...judged(rows, bill, heard, SETTLE_TIMEOUT_MS)];
}

/** Each recovered settle after its correction. */
function corrected(entries: readonly LedgerEntry[], bill: readonly BilledRequest[]) {
  const wrong: string[] = [];
  const late = new Map<string, LedgerEntry>();
  for (const entry of entries) {
    if (entry.kind !== "adjust") continue;
    if (entry.reason !== LATE) wrong.push(`${entry.attempt}: an adjustment that no one asked for`);
    else if (late.has(entry.attempt)) wrong.push(`${entry.attempt}: corrected twice`);
    late.set(entry.attempt, entry);
  }
  const owed = new Map(bill.map((one) => [`${one.tag} ${one.of}`, one]));
  const rows = entries.map((entry): LedgerEntry => {
    const truth = late.get(entry.attempt);
    if (entry.kind !== "settle" || !truth) return entry;
    if (entry.outcome !== "recovered") wrong.push(`${entry.attempt}: corrected, and not recovered`);
    const costNano = (entry.costNano ?? 0n) + (truth.costNano ?? 0n);
    const billed = owed.get(`${entry.labels["x-rig"]} ${entry.target.provider}`);
    const exact = costNano === (billed ? priced(billed.usage()) : 0n);
    // For a client that left while its node was suspended, the actual cost is an estimate, as
    // everywhere.
    return {
      ...entry,
      costNano,
      usage: truth.usage,
      outcome: !exact ? "left" : billed ? "ok" : "failed",
      state: exact ? (costNano === 0n ? "void" : "exact") : "estimated",
    };
  });
  return { rows, wrong };
}
