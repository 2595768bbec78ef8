// Sums, added up where the rows are: a group leaves the database as one line, and the book's totals put groups together as everywhere. Whole days
// and half hours come from their sums as far as these go, and all else from rows; one statement, so one moment.
import type { LedgerQuery, Total } from "tollgate/plugin";
import {
  Amounts,
  createTotals,
  groupsOf as textGroups,
  type RowFacts,
  type TotalsQuery,
} from "tollgate/store";
import type { Ask, Row } from "./line.ts";
import { FAR, momentOf, wholeOf, type Moment, type Stretch } from "./stretch.ts";
import { COUNTED } from "./columns.ts";
import { depthsFor, each, STATE, SUMS, unitsOf, USED } from "./summing.ts";
import { Values, where } from "./where.ts";

type Fact = keyof RowFacts;
/** What has to be known of a group to say where it stands. */
const FACTS: { readonly [D in TotalsQuery["by"][number]]: readonly Fact[] } = {
  key: ["key"],
  account: ["account"],
  accounts: ["account"],
  label: ["labels"],
  labels: ["labels"],
  provider: ["provider"],
  model: ["provider", "model"],
  credential: ["credential"],
  frontend: ["frontend"],
  outcome: ["outcome"],
  price: ["price"],
  state: ["state"],
  day: [],
  hour: [],
};
/** And whether it is one that is asked for. */
const ASKED = [
  "key",
  "account",
  "label",
  "provider",
  "model",
  "credential",
  "frontend",
  "outcome",
] as const;

/** No more: each makes groups of its own, and a month of calls has nearly as many of all facts as it has calls. */
function factsFor({ by, zone: _, ...query }: TotalsQuery): readonly Fact[] {
  const told = [...by, ...ASKED.filter((each) => query[each] !== undefined)];
  return [...new Set(told.flatMap((each) => FACTS[each]))];
}

/** Rows of one kind, and which of them. */
interface Picked {
  readonly table: string;
  readonly where: string;
}

/** Where lines come from: rows, or sums of them. */
interface Source {
  readonly calls: Picked;
  /** With what each has used: a correction's usage is for the reader. */
  readonly used: Picked;
  readonly state: string;
  readonly sums: { readonly [K in keyof typeof SUMS]: string };
  /** Of units that have columns, beside the calls. */
  readonly counted: readonly string[];
  /** When it was, where this source says it by itself. */
  readonly moment?: string;
}

export async function totalsOf(ask: Ask, s: string, of: TotalsQuery): Promise<readonly Total[]> {
  const { by, zone, ...query } = of;
  const facts = factsFor(of);
  const values = new Values();
  const moment = by.includes("day") || by.includes("hour") ? momentOf(of, values) : undefined;
  const { newest, sources } = sourcesOf(of, s, facts, values, moment);
  const selected = sources
    .flatMap((source) => selects(source, facts, source.moment ?? moment?.is))
    .join("\nUNION ALL\n");
  const text = `${newest === undefined ? "" : `WITH newest AS MATERIALIZED (${newest})\n`}${selected}`;
  for (;;) {
    const pruned = await prunedSums(ask, s, query);
    const lines = await ask({ text, values: values.all });
    // Rows that went in between are in neither, or in both.
    if ((await sumsOf(ask, s)) !== pruned.of) continue;
    const sums = createTotals(by, zone);
    for (const [named, amounts, at] of pruned.sums) sums.take(named, amounts, at, query);
    for (const { facts: named, at, amounts } of groupsOf(lines, query.state ?? "exact"))
      sums.take(named, amounts, at, query);
    return sums.totals();
  }
}

/** How many sums stand for rows that are gone. */
async function sumsOf(ask: Ask, s: string): Promise<number> {
  const [row] = await ask({ text: `SELECT sums FROM ${s}.base` });
  return Number(row?.["sums"] ?? 0);
}

/** What rows came to that are gone, by quarters of an hour: a stretch that begins or ends within one counts it where it begins. */
async function prunedSums(
  ask: Ask,
  s: string,
  { attempt, upstreamId, state, from = -FAR, to = FAR }: LedgerQuery,
): Promise<{
  readonly of: number;
  readonly sums: readonly (readonly [RowFacts, Amounts, at: number])[];
}> {
  const of = await sumsOf(ask, s);
  if (of === 0 || attempt !== undefined || upstreamId !== undefined || state === "open")
    return { of, sums: [] };
  const rows = await ask({
    text: `SELECT quarter, text FROM ${s}.sums WHERE n <= $1 AND quarter >= $2 AND quarter < $3`,
    values: [of, Math.ceil(from), Math.ceil(to)],
  });
  return {
    of,
    sums: rows.flatMap(({ quarter, text }) =>
      [...textGroups(text!)].map(([facts, amounts]) => [facts, amounts, Number(quarter)] as const),
    ),
  };
}

function sourcesOf(
  of: TotalsQuery,
  s: string,
  facts: readonly Fact[],
  values: Values,
  moment: Moment | undefined,
): { readonly newest?: string; readonly sources: readonly Source[] } {
  const { by: _, zone: __, from, to, ...query } = of;
  const counted = () => `${isCounted(query)} AND ${where(query, s, values)}`;
  const voids = query.state !== undefined;
  const depths = depthsFor(facts, voids);
  const whole = wholeOf(
    of,
    depths.map(({ span }) => span),
  );
  const all = whole.flat();
  const apart = (from: number | undefined, to: number | undefined): Source => {
    const time = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const condition = `${counted()} AND ${where(time, s, values)}`;
    const listed = moment?.listed?.();
    return listed
      ? { ...rows(`${s}.entry e ${listed.join}`, condition), moment: listed.is }
      : rows(`${s}.entry e`, condition);
  };
  if (all.length === 0) return { sources: [apart(from, to)] };
  const during = ({ from, to }: Stretch) =>
    `e.at >= ${values.add(from)}::bigint AND e.at < ${values.add(to)}::bigint`;
  const few = Object.values(query).some((each) => each !== undefined);
  const hull = {
    from: Math.min(...all.map((one) => one.from)),
    to: Math.max(...all.map((one) => one.to)),
  };
  const fresh = `SELECT node, n FROM ${s}.batch WHERE pos IS NULL
    UNION ALL SELECT node, n FROM ${s}.batch WHERE pos >= (SELECT upto FROM ${s}.summed)`;
  // Planning to read rows takes longer than reading those few: it is done once.
  const newest = `SELECT e.* FROM (${fresh}) f ${each(`SELECT * FROM ${s}.entry e WHERE e.node = f.node AND e.n = f.n`)} e
    WHERE ${counted()} AND ${during(hull)}`;
  const sources = [
    ...(hull.from === (from ?? -FAR) ? [] : [apart(from, hull.from)]),
    ...(hull.to === (to ?? FAR) ? [] : [apart(hull.to, to)]),
    rows("newest e", "true"),
    ...depths.flatMap((depth, i) =>
      whole[i]!.map((stretch) => {
        const summed = `${during(stretch)} AND ${where(query, undefined, values)}${depth.voids && !voids ? " AND e.state <> 'void'" : ""}`;
        return {
          calls: { table: `${s}.${depth.table} e`, where: summed },
          used: { table: unitsOf(s, depth, few), where: summed },
          state: "e.state",
          sums: OF_SUMS,
          counted: COUNTED.map((unit) => `NULL::numeric AS ${unit}`),
        };
      }),
    ),
  ];
  return { newest, sources };
}

/** The same of what is added up. */
const OF_SUMS = {
  calls: "sum(e.calls)",
  unpriced: "sum(e.unpriced)",
  estimated: "sum(e.estimated)",
  nano: "sum(e.nano)",
  whole: "sum(u.whole)",
  parts: "sum(u.parts)",
} as const;

const rows = (table: string, condition: string): Source => ({
  calls: { table, where: condition },
  used: {
    table: `${table}, json_each_text(e.usage::json) u(unit, value)`,
    where: `e.kind <> 2 AND e.usage IS NOT NULL AND ${condition}`,
  },
  state: STATE,
  sums: SUMS,
  counted: USED,
});

/** What groups come to, and then what each of them has used. */
function selects(
  { calls, used, state, sums, counted }: Source,
  facts: readonly string[],
  time: string | undefined,
): readonly string[] {
  const named = facts.map((name) => `${name === "state" ? state : `e.${name}`} AS ${name}`);
  if (time !== undefined) named.push(`${time} AS time`);
  const listed = named.map((column) => `${column}, `).join("");
  const groups = named.map((_, i) => i + 1);
  const grouped = (places: readonly number[]) =>
    places.length > 0 ? `GROUP BY ${places.join(", ")}` : "HAVING count(*) > 0";
  return [
    `SELECT ${listed}NULL::text AS unit, ${sums.calls} AS a, ${sums.nano} AS b, ${sums.unpriced} AS c, ${sums.estimated} AS d, ${counted.join(", ")}
     FROM ${calls.table} WHERE ${calls.where} ${grouped(groups)}`,
    `SELECT ${listed}u.unit AS unit, ${sums.whole}, ${sums.parts}, NULL, NULL${", NULL".repeat(COUNTED.length)}
     FROM ${used.table} WHERE ${used.where} ${grouped([...groups, groups.length + 1])}`,
  ];
}

/** Settled calls and their corrections; open or void calls only when they are what is asked for. */
const isCounted = ({ state }: LedgerQuery): string =>
  state === undefined
    ? "e.kind <> 0 AND (e.kind = 2 OR e.state <> 'void')"
    : `e.kind = ${state === "open" ? 0 : 1}`;

interface Group {
  readonly facts: RowFacts;
  readonly at: number;
  readonly amounts: Amounts;
}

const COUNTS = new Set<string>(["unit", "a", "b", "c", "d", ...COUNTED]);
const nameOf = (line: Row): string =>
  JSON.stringify(Object.entries(line).filter(([column]) => !COUNTS.has(column)));

/** One for each line of calls; what was used follows it, by the same name. */
function groupsOf(lines: readonly Row[], state: RowFacts["state"]): readonly Group[] {
  const found = new Map<string, Group>();
  for (const line of lines) {
    const name = nameOf(line);
    let group = found.get(name);
    if (!group) {
      group = {
        facts: factsOf(line, state),
        at: Number(line["time"] ?? 0),
        amounts: new Amounts(),
      };
      found.set(name, group);
    }
    const { amounts } = group;
    if (line["unit"] != null) {
      amounts.count(line["unit"], Number(line["a"]), Number(line["b"]));
      continue;
    }
    amounts.calls += Number(line["a"]);
    amounts.costNano += BigInt(line["b"]!);
    amounts.unpriced += Number(line["c"]);
    amounts.estimated += Number(line["d"]);
    for (const unit of COUNTED) {
      const many = line[unit] ?? null;
      if (many !== null) amounts.count(unit, Number(many));
    }
  }
  return [...found.values()];
}

/** `state`: of all of them, where lines do not say it. */
const factsOf = (row: Row, state: RowFacts["state"]): RowFacts => ({
  provider: row["provider"] ?? "",
  model: row["model"] ?? "",
  credential: row["credential"] ?? "",
  frontend: row["frontend"] ?? "",
  outcome: row["outcome"] ?? "",
  state: (row["state"] ?? state) as RowFacts["state"],
  price: row["price"] ?? null,
  key: row["key"] ?? "",
  account: row["account"] ?? undefined,
  labels: row["labels"] ? (JSON.parse(row["labels"]) as RowFacts["labels"]) : {},
});
