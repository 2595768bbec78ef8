// Sums over calls, one row at a time. What was void cost nothing and is no call, unless asked for by name.
import { UNITS } from "../plugin/index.ts";
import type { HeadersOut, LedgerQuery, Store, Total, Unit, Usage } from "../plugin/index.ts";
import type { LedgerRow } from "./row.ts";

/** What a store's `totals` is asked. */
export type TotalsQuery = Parameters<Store["totals"]>[0];

/** What a sum has to know of a row. */
export type Summand = Pick<
  LedgerRow,
  "kind" | "at" | "key" | "labels" | "account" | "usage" | "costNano"
> & {
  target: Pick<LedgerRow["target"], "provider" | "model">;
};

/** Empty sums. `add` each row that `isCounted`, then ask for `totals`. */
export function createTotals(by: TotalsQuery["by"]): {
  add(row: Summand): void;
  totals(): readonly Total[];
} {
  const groups = new Map<string, Growing>();
  return {
    add(row) {
      for (const names of groupsOf(row, by)) {
        const id = JSON.stringify(names);
        let group = groups.get(id);
        if (!group)
          groups.set(id, (group = { by: names, calls: 0, usage: {}, costNano: 0n, unpriced: 0 }));
        group.costNano += row.costNano ?? 0n;
        if (row.kind === "adjust") continue;
        group.calls++;
        if (row.costNano === null) group.unpriced++;
        add(group.usage, row.usage);
      }
    },
    totals: () =>
      [...groups].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, total]) => total),
  };
}

/** Settled calls and their corrections; open or void calls only when they are what is asked for. */
export const isCounted = (row: LedgerRow, state: LedgerQuery["state"]): boolean =>
  state === undefined
    ? row.kind !== "reserve" && row.state !== "void"
    : row.kind === (state === "open" ? "reserve" : "settle");

type Growing = { -readonly [K in keyof Total]: Total[K] } & { usage: { [U in Unit]?: number } };

function add(sum: { [U in Unit]?: number }, usage: Usage): void {
  for (const unit of UNITS) {
    const count = usage[unit];
    if (count !== undefined) sum[unit] = (sum[unit] ?? 0) + count;
  }
}

/** A call with several labels stands under each of them, and under each account from the outermost to its own. */
function groupsOf(row: Summand, by: TotalsQuery["by"]): HeadersOut[] {
  const one: Record<string, string> = {};
  for (const dimension of by)
    if (dimension === "key") one["key"] = row.key;
    else if (dimension === "provider") one["provider"] = row.target.provider;
    else if (dimension === "model") one["model"] = `${row.target.provider}/${row.target.model}`;
    else if (dimension === "day") one["day"] = new Date(row.at).toISOString().slice(0, 10);
  const groups = by.includes("account")
    ? pathsOf(row.account).map((account) => ({ ...one, account }))
    : [one];
  if (!by.includes("label")) return groups;
  const labels = Object.entries(row.labels).filter(([, value]) => value !== undefined);
  return groups.flatMap((group) =>
    labels.length === 0
      ? [{ ...group, label: "" }]
      : labels.map(([name, value]) => ({ ...group, label: `${name}=${value}` })),
  );
}

/** "a/b" → "a", "a/b". */
function pathsOf(account = ""): string[] {
  const names = account.split("/");
  return names.map((_, i) => names.slice(0, i + 1).join("/"));
}
