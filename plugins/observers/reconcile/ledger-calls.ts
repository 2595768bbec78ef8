// Reads the calls of the ledger that a bill is compared with.
import {
  fail,
  UNITS,
  type Context,
  type LedgerEntry,
  type Unit,
  type Usage,
} from "tollgate/plugin";
import type { BillPeriod } from "./bill-api.ts";
import { dayOf } from "./bill-line.ts";
import type { LedgerCall } from "./compare.ts";

type Ledger = Pick<Context["ledger"], "listEntries" | "sumEntries">;

const PAGE = 500;
/** Maximum number of calls that one comparison reads. Above this, choose a shorter period. */
const MAX_CALLS = 1_000_000;

/**
 * Reads the calls that ended in the period, with all corrections of them. Calls whose rows retention
 * replaced by rollups are returned as sums by day, model, credential, and state.
 */
export async function readCalls(
  ledger: Ledger,
  provider: string,
  { from, to }: BillPeriod,
): Promise<readonly LedgerCall[]> {
  // The sums are read before the rows, so that a call that ends in the meantime is not missing.
  const sums = await readSums(ledger, provider, { from, to });
  const calls = new Map<string, LedgerCall>();
  for await (const row of readRows(ledger, { provider, from, to })) {
    if (row.kind !== "settle" || row.state === "external") continue;
    const call = toCall(row);
    sums.get(groupOf(call))?.subtract(call);
    calls.set(row.attempt, call);
    if (calls.size > MAX_CALLS)
      fail("invalid", `The period has more than ${MAX_CALLS} calls. Choose a shorter period.`, {
        code: "bad_input",
      });
  }
  // Corrections are written later than their calls.
  for await (const { attempt, costNano } of readRows(ledger, {
    provider,
    from,
    outcome: "adjusted",
  })) {
    const call = calls.get(attempt);
    if (call && costNano != null)
      calls.set(attempt, { ...call, nano: call.nano + BigInt(costNano) });
  }
  return [...calls.values(), ...[...sums.values()].flatMap((sum) => sum.rest())];
}

/** Calls with equal values are one sum. */
const groupOf = ({ day, model, credential, state, recovered }: LedgerCall): string =>
  [day, model, credential, state, recovered].join("\n");

/** The part of a sum whose rows were not read. */
class PrunedCalls {
  readonly #of: LedgerCall;
  readonly #usage: { [U in Unit]?: number } = {};
  #calls = 0;
  #nano = 0n;

  constructor(of: LedgerCall) {
    this.#of = of;
  }

  add(calls: number, usage: Usage, nano: bigint): void {
    this.#calls += calls;
    this.#nano += nano;
    for (const unit of UNITS)
      if (usage[unit] !== undefined) this.#usage[unit] = (this.#usage[unit] ?? 0) + usage[unit];
  }

  subtract({ usage, nano }: LedgerCall): void {
    const negative = UNITS.map((unit) => [unit, -(usage[unit] ?? 0)] as const);
    this.add(-1, Object.fromEntries(negative), -nano);
  }

  rest(): readonly LedgerCall[] {
    if (this.#calls <= 0) return [];
    return [{ ...this.#of, usage: this.#usage, nano: this.#nano, summed: this.#calls }];
  }
}

async function readSums(
  ledger: Ledger,
  provider: string,
  { from, to }: BillPeriod,
): Promise<ReadonlyMap<string, PrunedCalls>> {
  const sums = new Map<string, PrunedCalls>();
  const by = ["day", "model", "credential", "state", "outcome"] as const;
  for (const { by: of, calls, usage, costNano } of await ledger.sumEntries({
    provider,
    from,
    to,
    by,
  })) {
    // The provider bills calls with a client's own credential to the client.
    if (of["outcome"] === "adjusted" || of["state"] === "external") continue;
    const call: LedgerCall = {
      attempt: "",
      startDay: of["day"]!,
      day: of["day"]!,
      model: of["model"]!.slice(provider.length + 1),
      credential: of["credential"]!,
      state: of["state"] as LedgerCall["state"],
      recovered: of["outcome"] === "recovered",
      usage: {},
      nano: 0n,
    };
    const id = groupOf(call);
    let sum = sums.get(id);
    if (!sum) sums.set(id, (sum = new PrunedCalls(call)));
    sum.add(calls, usage, costNano);
  }
  return sums;
}

async function* readRows(
  ledger: Ledger,
  query: Parameters<Ledger["listEntries"]>[0],
): AsyncGenerator<LedgerEntry, void> {
  let after: string | undefined;
  do {
    const page = await ledger.listEntries(query, { after, limit: PAGE });
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}

function toCall(row: LedgerEntry): LedgerCall {
  return {
    attempt: row.attempt,
    startDay: dayOf(row.at - (row.ms?.total ?? 0)),
    day: dayOf(row.at),
    model: row.target.model,
    credential: row.target.credential,
    state: row.state === "open" || row.state === "external" ? "estimated" : row.state,
    recovered: row.outcome === "recovered",
    usage: row.usage,
    nano: BigInt(row.costNano ?? 0n),
  };
}
