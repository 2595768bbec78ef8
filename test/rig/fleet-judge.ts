// What a fleet's ledger says beside the bill of the upstream. As for one gateway, but for calls whose node was taken for dead while it
// lived: they were presumed, and when the node came back it told the truth as one correction.
import type { Entry } from "tollgate/plugin";
import { priced, type Charged } from "./biller.ts";
import { judged } from "./crash-judge.ts";
import type { Heard } from "./traffic.ts";

const LATE = "settled late";

export interface Tight {
  /** Its requests' tags begin with it. */
  readonly tag: string;
  readonly worth: bigint;
}

export function judgedFleet(
  entries: readonly Entry[],
  bill: readonly Charged[],
  heard: readonly Heard[],
  budgets: readonly Tight[],
): string[] {
  const { rows, wrong } = corrected(entries, bill);
  for (const { tag, worth } of budgets) {
    const spent = bill
      .filter((one) => one.tag.startsWith(`${tag}.`))
      .reduce((sum, one) => sum + priced(one.usage()), 0n);
    if (spent > worth) wrong.push(`budget ${tag}: ${spent} billed, worth ${worth}`);
  }
  const seqs = entries.map(({ seq }) => seq);
  if (seqs.some((seq, i) => i > 0 && seq <= seqs[i - 1]!))
    wrong.push("entries are not listed in the order of their numbers");
  return [...wrong, ...judged(rows, bill, heard)];
}

/** Each presumed settle as it stands after its correction. */
function corrected(entries: readonly Entry[], bill: readonly Charged[]) {
  const wrong: string[] = [];
  const late = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.kind !== "adjust") continue;
    if (entry.reason !== LATE) wrong.push(`${entry.attempt}: an adjustment that no one asked for`);
    else if (late.has(entry.attempt)) wrong.push(`${entry.attempt}: corrected twice`);
    late.set(entry.attempt, entry);
  }
  const owed = new Map(bill.map((one) => [`${one.tag} ${one.of}`, one]));
  const rows = entries.map((entry): Entry => {
    const truth = late.get(entry.attempt);
    if (entry.kind !== "settle" || !truth) return entry;
    if (entry.outcome !== "presumed") wrong.push(`${entry.attempt}: corrected, and not presumed`);
    const costNano = (entry.costNano ?? 0n) + (truth.costNano ?? 0n);
    const billed = owed.get(`${entry.labels["x-rig"]} ${entry.target.provider}`);
    const exact = costNano === (billed ? priced(billed.usage()) : 0n);
    // Of a client that left while its node slept the truth is an estimate, as it is everywhere.
    return {
      ...entry,
      costNano,
      usage: truth.usage,
      outcome: exact ? "ok" : "left",
      state: exact ? (costNano === 0n ? "void" : "exact") : "estimated",
    };
  });
  return { rows, wrong };
}
