// Sums over calls, row by row or from sums that were made before: both come to the same, to the last digit. What was void cost nothing
// and is no call, unless asked for by name.
import type { HeadersOut, LedgerQuery, Store, Total } from "../plugin/index.ts";
import { Amounts } from "./amounts.ts";
import { areCounted, factsOf, meets, type RowFacts, type Summand } from "./facts.ts";
import { zoneClock } from "../lib/zone.ts";

export { isCounted, type Summand } from "./facts.ts";

/** What a store's `totals` is asked. */
export type TotalsQuery = Parameters<Store["totals"]>[0];

/** Growing totals. */
export interface Totals {
  /** Each row that `isCounted`. */
  add(row: Summand): void;
  /** Sums of many rows, if they are what is asked for; `at` is a moment of the day and hour that all of them are in. */
  take(facts: RowFacts, amounts: Amounts, at: number, query: LedgerQuery): void;
  totals(): readonly Total[];
}

/** Empty sums, by days and hours of `zone`; UTC when it is absent. Throws a RangeError for a zone that there is not. */
export function createTotals(by: TotalsQuery["by"], zone?: string): Totals {
  const groups = new Map<string, { by: HeadersOut; amounts: Amounts }>();
  const namesOf = namer(by, zone);
  function group(names: HeadersOut, order: HeadersOut): Amounts {
    const id = JSON.stringify(order);
    let found = groups.get(id);
    if (!found) groups.set(id, (found = { by: names, amounts: new Amounts() }));
    return found.amounts;
  }
  return {
    add(row) {
      for (const [names, order] of namesOf(factsOf(row), row.at)) group(names, order).row(row);
    },
    take(facts, amounts, at, query) {
      if (!areCounted(facts, query.state) || !meets(facts, query)) return;
      for (const [names, order] of namesOf(facts, at)) group(names, order).add(amounts);
    },
    totals: () =>
      [...groups]
        .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
        .map(([, { by: names, amounts }]) => ({
          by: names,
          calls: amounts.calls,
          usage: amounts.usage(),
          costNano: amounts.costNano,
          unpriced: amounts.unpriced,
          estimated: amounts.estimated,
        })),
  };
}

type Dimension = TotalsQuery["by"][number];
type Naming = (of: RowFacts) => string;

/** Those under which a call stands once. */
const ONE: { readonly [D in Exclude<Dimension, "label" | "account" | "day" | "hour">]: Naming } = {
  key: (of) => of.key,
  accounts: (of) => of.account ?? "",
  provider: (of) => of.provider,
  model: (of) => `${of.provider}/${of.model}`,
  credential: (of) => of.credential,
  frontend: (of) => of.frontend,
  outcome: (of) => of.outcome,
  state: (of) => of.state,
  price: (of) => of.price ?? "",
  labels: ({ labels }) => JSON.stringify(labels, Object.keys(labels).sort()),
};

type Named = readonly [names: HeadersOut, order: HeadersOut];

/** The groups that a row is in. A call with several labels stands under each of them, and under each account from the outermost to its own. */
function namer(by: TotalsQuery["by"], zone: string | undefined) {
  const clock = zoneClock(zone);
  const accounts = by.includes("account");
  const labels = by.includes("label");
  const [days, hours] = [by.includes("day"), by.includes("hour")];
  const timed = days || hours;
  // Of one moment there are many: sums of a day are said to be of its beginning.
  let last: { at: number; day: string; hour: string; start: string } | undefined;
  const timesOf = (at: number) => {
    if (last?.at === at) return last;
    const start = hours ? new Date(clock.hourStart(at)).toISOString() : "";
    last = { at, day: days ? clock.day(at) : "", hour: hours ? clock.hour(at) : "", start };
    return last;
  };
  return (of: RowFacts, at: number): readonly Named[] => {
    const names: Record<string, string> = {};
    const times = timed ? timesOf(at) : undefined;
    for (const dimension of by)
      if (dimension === "day" || dimension === "hour") names[dimension] = times![dimension];
      else if (dimension !== "label" && dimension !== "account")
        names[dimension] = ONE[dimension](of);
    // An hour that comes twice has two names, of which the later one comes first in the alphabet.
    const order = hours ? { ...names, hour: times!.start } : names;
    if (!accounts && !labels) return [[names, order]];
    const more = several(of, accounts, labels);
    return more.map((each): Named => [
      { ...names, ...each },
      { ...order, ...each },
    ]);
  };
}

function several({ account, labels }: RowFacts, accounts: boolean, labelled: boolean) {
  const groups: HeadersOut[] = accounts
    ? pathsOf(account).map((path) => ({ account: path }))
    : [{}];
  if (!labelled) return groups;
  const said = Object.entries(labels).filter(([, value]) => value !== undefined);
  const each = said.length === 0 ? [""] : said.map(([name, value]) => `${name}=${value}`);
  return groups.flatMap((group) => each.map((label) => ({ ...group, label })));
}

/** "a/b" → "a", "a/b". */
function pathsOf(account = ""): string[] {
  const names = account.split("/");
  return names.map((_, i) => names.slice(0, i + 1).join("/"));
}
