// Compares a ledger with the upstream's bill and the clients' responses. Pure: rows in, violations
// out.
//
// Rules: a delivered response has exactly one terminal entry. An exact row equals the bill, to the
// nano-dollar. A recovered row is at least the bill, and marked as an estimate. No billed call is
// missing or doubled.
import type { LedgerEntry } from "tollgate/plugin";
import { priced, type BilledRequest } from "../money/billing-upstream.ts";
import type { ClientResult } from "../load/traffic.ts";

/**
 * Text in transit when a client disconnects: upstream writes until it notices. On a busy machine,
 * all that the client has not read.
 */
const ON_THE_WAY = 60;

export function judged(
  entries: readonly LedgerEntry[],
  bill: readonly BilledRequest[],
  heard: readonly ClientResult[],
  patienceMs = Infinity,
): string[] {
  const wrong: string[] = [];
  const reserves = new Map<string, LedgerEntry>();
  const settles = new Map<string, LedgerEntry>();
  const billOf = new Map<string, BilledRequest>();
  for (const one of bill) {
    const name = `${one.tag} ${one.of}`;
    if (billOf.has(name)) wrong.push(`${name}: asked twice`);
    billOf.set(name, one);
  }
  for (const entry of entries) {
    const book =
      entry.kind === "reserve" ? reserves : entry.kind === "settle" ? settles : undefined;
    if (book?.has(entry.attempt)) wrong.push(`${entry.attempt}: ${entry.kind} twice`);
    book?.set(entry.attempt, entry);
  }
  const told = new Map(heard.map(({ request, words }) => [request.tag, words]));
  const rows = new Map<string, LedgerEntry>();
  for (const [attempt, reserve] of reserves) {
    const settle = settles.get(attempt);
    if (!settle) {
      wrong.push(`${attempt}: left open`);
      continue;
    }
    const tag = reserve.labels["x-rig"]!;
    const name = `${tag} ${reserve.target.provider}`;
    if (rows.has(name)) wrong.push(`${name}: two calls of one request to one provider`);
    rows.set(name, settle);
    const problems = against(settle, billOf.get(name), told.get(tag) ?? 0);
    wrong.push(...problems.map((problem) => `${name}: ${problem}`));
  }
  for (const attempt of settles.keys())
    if (!reserves.has(attempt)) wrong.push(`${attempt}: settled without a reserve`);
  for (const name of billOf.keys())
    if (!rows.has(name)) wrong.push(`${name}: billed, and not in the ledger`);
  const said = Map.groupBy([...rows.values()], ({ labels }) => labels["x-rig"]!);
  return [
    ...wrong,
    ...heard.flatMap((one) => delivered(one, said.get(one.request.tag) ?? [], patienceMs)),
  ];
}

/** One row and its upstream bill. `told`: the number of words that its client received. */
function against(settle: LedgerEntry, billed: BilledRequest | undefined, told: number): string[] {
  const owed = billed ? priced(billed.usage()) : 0n;
  const cost = settle.costNano ?? -1n;
  const said = JSON.stringify(settle.usage);
  switch (settle.state) {
    case "exact":
      return cost === owed ? [] : [`exact ${cost}, billed ${owed}`];
    case "void":
      return owed === 0n ? [] : [`void, billed ${owed}`];
    case "estimated": {
      const onTheWay = Math.max(ON_THE_WAY, (billed?.usage().output ?? 0) - told);
      const least = settle.outcome === "recovered" ? owed : owed - priced({ output: onTheWay });
      return cost >= least ? [] : [`${settle.outcome} ${cost}, billed ${owed} ${said}`];
    }
    default:
      return [`${settle.outcome}, and ${settle.state}`];
  }
}

/**
 * `said`: the ends of its request's calls. `patienceMs`: a slower ledger does not delay a client.
 * If its gateway is killed then, there is an estimate.
 */
function delivered(
  { delivered, request, text, ms }: ClientResult,
  said: readonly LedgerEntry[],
  patienceMs: number,
): readonly string[] {
  if (!delivered) return [];
  const own = said.filter(({ outcome }) => outcome === "ok");
  if (own.length === 1)
    return own[0]!.state === "exact" ? [] : [`${request.tag}: delivered, and ${own[0]!.state}`];
  if (ms >= patienceMs && said.at(-1)?.outcome === "recovered") return [];
  const ends = said.map(({ attempt, outcome, state, at, instance }) =>
    [attempt, outcome, state, new Date(at).toISOString(), instance].join(" "),
  );
  return [
    `${request.tag}: delivered, with ${own.length} entries that say so, of ${ends.join("; ")} after ${Math.round(ms)} ms: ${text.slice(-80)}`,
  ];
}
