// Sums, added up where the rows are: a group leaves the database as one line, and the book's totals put groups together as everywhere. Whole days
// come from the sums of days as far as these go, and all else from rows; one statement, so one moment.
import type { LedgerQuery, Store, Total } from "tollgate/plugin";
import {
  Amounts,
  createTotals,
  groupsOf as textGroups,
  type RowFacts,
  zoneClock,
} from "tollgate/store";
import type { Ask, Row } from "./line.ts";
import { DAY_MS, STATE, SUMS } from "./summing.ts";
import { Values, where } from "./where.ts";

type TotalsQuery = Parameters<Store["totals"]>[0];

/** Days and hours of every zone begin at one of these. */
const QUARTER_MS = 900_000;
type Fact = keyof RowFacts;
/** A whole number of quarters, and less than any day has. */
const SHORT_MS = 20 * 3_600_000;
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

/** Where lines come from: rows, or sums of days. */
interface Source {
  readonly calls: Picked;
  /** With what each has used: a correction's usage is for the reader. */
  readonly used: Picked;
  readonly state: string;
  readonly time: string;
  readonly sums: { readonly [K in keyof typeof SUMS]: string };
}

export async function totalsOf(ask: Ask, s: string, of: TotalsQuery): Promise<readonly Total[]> {
  const { by, zone, ...query } = of;
  const facts = factsFor(of);
  const timed = by.includes("day") || by.includes("hour");
  const values = new Values();
  const text = sourcesOf(of, s, values)
    .flatMap((source) => selects(source, facts, timed))
    .join("\nUNION ALL\n");
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

function sourcesOf(of: TotalsQuery, s: string, values: Values): readonly Source[] {
  const { by: _, zone: __, ...query } = of;
  const counted = `${isCounted(query)} AND ${where(query, s, values)}`;
  const days = daysOf(of);
  const time = timeOf(of, values);
  if (!days) return [rows(`${s}.entry e`, counted, time)];
  const [from, to] = [values.add(days.from), values.add(days.to)];
  const { from: _from, to: _to, ...others } = query;
  const fresh = `SELECT node, n FROM ${s}.batch WHERE pos IS NULL
    UNION ALL SELECT node, n FROM ${s}.batch WHERE pos >= (SELECT upto FROM ${s}.summed)`;
  const newest = `(${fresh}) f ${each(`SELECT * FROM ${s}.entry e WHERE e.node = f.node AND e.n = f.n`)} e`;
  const during = (column: string) => `${column} >= ${from}::bigint AND ${column} < ${to}::bigint`;
  const summed = `${during("e.day")} AND ${where(others, undefined, values)}${
    query.state === undefined ? " AND e.state <> 'void'" : ""
  }`;
  return [
    ...(days.cut
      ? [
          rows(
            `${s}.entry e`,
            `${counted} AND (e.at < ${from}::bigint OR e.at >= ${to}::bigint)`,
            time,
          ),
        ]
      : []),
    rows(newest, `${counted} AND ${during("e.at")}`, time),
    {
      calls: { table: `${s}.day e`, where: summed },
      used: {
        table: `${s}.day e ${each(`SELECT * FROM ${s}.day_unit u WHERE u.day = e.day AND u.grp = e.grp`)} u`,
        where: summed,
      },
      state: "e.state",
      time: "e.day",
      sums: {
        calls: "sum(e.calls)",
        unpriced: "sum(e.unpriced)",
        estimated: "sum(e.estimated)",
        nano: "sum(e.nano)",
        whole: "sum(u.whole)",
        parts: "sum(u.parts)",
      },
    },
  ];
}

/** For each of what stands before it, by an index. PostgreSQL would read all that there is where it takes that for cheaper: not with an offset. */
const each = (select: string): string => `CROSS JOIN LATERAL (${select} OFFSET 0)`;

const rows = (table: string, condition: string, time: string): Source => ({
  calls: { table, where: condition },
  used: {
    table: `${table}, json_each_text(e.usage::json) u(unit, value)`,
    where: `e.kind <> 2 AND ${condition}`,
  },
  state: STATE,
  time,
  sums: SUMS,
});

/** Whole days of UTC that the query asks for, and whether it asks for parts of others too; undefined: no day's sum can say it. */
function daysOf({
  by,
  zone = "UTC",
  ...query
}: TotalsQuery): { from: number; to: number; cut: boolean } | undefined {
  const { from = 0, to = FAR, attempt, upstreamId, state } = query;
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return undefined;
  if (by.includes("hour") || (by.includes("day") && zone !== "UTC")) return undefined;
  const days = { from: Math.ceil(from / DAY_MS) * DAY_MS, to: Math.floor(to / DAY_MS) * DAY_MS };
  return days.from < days.to ? { ...days, cut: days.from !== from || days.to !== to } : undefined;
}

/** Longer than a report is: a list of so many days is short enough to be sent. */
const MOST_DAYS = 1_000;

/** A moment of the day, or of the quarter of an hour, that a row is in: which day that is in a zone, is for the host to say. */
function timeOf({ by, zone = "UTC", from, to }: TotalsQuery, values: Values): string {
  const quarter = `e.at - mod(e.at, ${QUARTER_MS})`;
  if (by.includes("hour") || !by.includes("day")) return quarter;
  if (zone === "UTC") return `e.at - mod(e.at, ${DAY_MS})`;
  if (from === undefined || to === undefined || to - from > MOST_DAYS * DAY_MS) return quarter;
  const begin = `${values.add(`{${dayStarts(zone, Math.ceil(from), to).join()}}`)}::bigint[]`;
  return `(${begin})[width_bucket(e.at, ${begin})]`;
}

/** `from`, and each moment before `to` at which a day of the zone begins. */
export function dayStarts(zone: string, from: number, to: number): readonly number[] {
  const clock = zoneClock(zone);
  const starts = [from];
  let day = clock.day(from);
  for (let at = Math.ceil(from / QUARTER_MS) * QUARTER_MS; at < to; at += QUARTER_MS) {
    const next = clock.day(at);
    if (next === day) continue;
    starts.push(at);
    day = next;
    // None is as short.
    at += SHORT_MS;
  }
  return starts;
}

/** The last moment that a date can say; it ends a day. */
const FAR = 8_640_000_000_000_000;

/** What groups come to, and then what each of them has used. */
function selects(
  { calls, used, state, time, sums }: Source,
  facts: readonly string[],
  timed: boolean,
): readonly string[] {
  const named = facts.map((name) => `${name === "state" ? state : `e.${name}`} AS ${name}`);
  if (timed) named.push(`${time} AS time`);
  const listed = named.map((column) => `${column}, `).join("");
  const groups = named.map((_, i) => i + 1);
  const grouped = (places: readonly number[]) =>
    places.length > 0 ? `GROUP BY ${places.join(", ")}` : "HAVING count(*) > 0";
  return [
    `SELECT ${listed}NULL::text AS unit, ${sums.calls} AS a, ${sums.nano} AS b, ${sums.unpriced} AS c, ${sums.estimated} AS d
     FROM ${calls.table} WHERE ${calls.where} ${grouped(groups)}`,
    `SELECT ${listed}u.unit AS unit, ${sums.whole}, ${sums.parts}, NULL, NULL
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

/** One for each line of calls; what was used follows it, by the same name. */
function groupsOf(lines: readonly Row[], state: RowFacts["state"]): readonly Group[] {
  const found = new Map<string, Group>();
  for (const line of lines) {
    const { unit: _, a: _a, b: _b, c: _c, d: _d, ...named } = line;
    const name = JSON.stringify(named);
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
