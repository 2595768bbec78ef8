// Compares a ledger with the provider's reports and the client's view of each session. Pure: rows in,
// violations out.
//
// Rules: a response whose end the client saw has exactly one settled row with the same counts. A
// response that the provider was asked for, or that the client saw begin, has a row. No row is
// missing, doubled, or left open. A response that was cut is billed as an estimate of at least the
// output that the client received.
import { inputTokens, outputTokens, type LedgerEntry } from "tollgate/plugin";
import type { Counts, ProtocolName, ProviderView } from "./providers.ts";
import type { ClientView } from "./session.ts";

export interface SessionView {
  readonly name: string;
  readonly protocol: ProtocolName;
  /** ID of its key, which no other session uses. */
  readonly key: string;
  /** Whether the gateway was killed while the session ran. */
  readonly wasKilled: boolean;
  /** Whether the provider cut the connection. */
  readonly wasCutByProvider: boolean;
  /** Whether only the gateway may have ended the session, so that it received all that was sent. */
  readonly wasHeard: boolean;
  readonly client: ClientView;
  readonly provider: ProviderView;
}

interface Judged {
  readonly wrong: string[];
  readonly counts: { [state: string]: number };
}

export function judgeSessions(
  sessions: readonly SessionView[],
  entries: readonly LedgerEntry[],
): Judged {
  const wrong: string[] = [];
  const counts: Judged["counts"] = { exact: 0, estimated: 0, recovered: 0, void: 0 };
  const byKey = Map.groupBy(entries, ({ key }) => key);
  for (const session of sessions) {
    const { problems, rows } = judge(session, byKey.get(session.key) ?? []);
    wrong.push(...problems.map((problem) => `${session.name}: ${problem}`));
    for (const { outcome, state } of rows) {
      const kind = outcome === "recovered" ? outcome : state;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
  }
  const keys = new Set(sessions.map(({ key }) => key));
  for (const [key, rows] of byKey)
    if (!keys.has(key)) wrong.push(`${rows.length} rows belong to ${key}, which has no session`);
  return { wrong, counts };
}

function judge(session: SessionView, entries: readonly LedgerEntry[]) {
  const problems: string[] = [];
  const { protocol, client, provider, wasKilled, wasCutByProvider, wasHeard } = session;
  const rows = pairRows(entries, problems);
  const billed = rows.filter(({ state }) => state !== "void");
  const exact = rows.filter(({ state }) => state === "exact");
  const recovered = rows.filter(({ outcome }) => outcome === "recovered");

  const left = exact.map(countsOf);
  for (const seen of client.done)
    if (!take(left, seen)) problems.push(`ended with ${text(seen)}, without an exact row`);
  const reported = [...provider.reported];
  for (const counts of exact.map(countsOf))
    if (!take(reported, counts)) problems.push(`an exact row of ${text(counts)}, never reported`);

  // A provider of Responses may lose a request before it has begun a response.
  const mayLose = protocol === "responses" || protocol === "pooled";
  const sure = mayLose && wasCutByProvider ? 0 : provider.asked;
  const least = Math.max(sure, client.begun, wasHeard ? provider.begun : 0);
  if (billed.length < least) problems.push(`${least} responses, and ${billed.length} are billed`);
  // A cut may lose a request on its way to the provider.
  const mostAsked = wasKilled || wasCutByProvider ? client.asked : provider.asked;
  const most = mostAsked + provider.spoken;
  if (billed.length > most) problems.push(`${most} responses, and ${billed.length} are billed`);
  if (rows.length > client.asked + provider.spoken)
    problems.push(`${client.asked + provider.spoken} responses, and ${rows.length} rows`);

  for (const row of rows) {
    const { state, outcome, costNano } = row;
    if (!["exact", "estimated", "void"].includes(state)) problems.push(`a row is ${state}`);
    if (outcome === "ok" && state !== "exact") problems.push(`a whole response is ${state}`);
    if (outcome === "recovered" && !wasKilled) problems.push("a row is recovered without a kill");
    if (state === "void" ? cost(row) !== 0n : cost(row) <= 0n)
      problems.push(`a row is ${state} and costs ${String(costNano)}`);
  }
  const output = billed.reduce((sum, { usage }) => sum + outputTokens(usage), 0);
  if (recovered.length === 0 && output < client.output)
    problems.push(`the client received ${client.output} tokens, and ${output} are billed`);
  return { problems, rows };
}

/** Returns the settle row of each reservation. */
function pairRows(entries: readonly LedgerEntry[], problems: string[]): LedgerEntry[] {
  const reserves = new Set<string>();
  const settles = new Map<string, LedgerEntry>();
  for (const entry of entries) {
    const { attempt, kind } = entry;
    if (kind === "adjust") problems.push(`${attempt} is adjusted`);
    else if (kind === "reserve" ? reserves.has(attempt) : settles.has(attempt))
      problems.push(`${attempt}: ${kind} twice`);
    if (kind === "reserve") reserves.add(attempt);
    if (kind === "settle") settles.set(attempt, entry);
  }
  for (const attempt of reserves)
    if (!settles.has(attempt)) problems.push(`${attempt} is left open`);
  for (const attempt of settles.keys())
    if (!reserves.has(attempt)) problems.push(`${attempt} is settled without a reserve`);
  return [...settles.values()];
}

const cost = ({ costNano }: LedgerEntry): bigint => BigInt(costNano ?? 0);
const countsOf = ({ usage }: LedgerEntry): Counts => ({
  input: inputTokens(usage),
  output: outputTokens(usage),
});
const text = ({ input, output }: Counts): string => `${input} and ${output} tokens`;

/** Removes these counts from a list. Returns whether it had them. */
function take(list: Counts[], { input, output }: Counts): boolean {
  const at = list.findIndex((one) => one.input === input && one.output === output);
  if (at >= 0) list.splice(at, 1);
  return at >= 0;
}
