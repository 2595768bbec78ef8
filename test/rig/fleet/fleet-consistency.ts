// Compares the sums of a fleet's database with its rows: a budget's usage is the sum of its calls,
// nothing is reserved without open calls, and sums by gateway, key, and provider are equal.
import type { LedgerEntry } from "tollgate/plugin";
import type { Fleet } from "../../kit/database/fleet.ts";

export interface Meter {
  /** unit|per|start|scope */
  readonly id: string;
  readonly level: bigint;
  readonly held: bigint;
}

/** Sum of each, in nano-dollars. */
type Sums = ReadonlyMap<string, bigint>;

export interface Counted {
  readonly meters: readonly Meter[];
  /** From the rows in the database. The others are from reports. */
  readonly sums: { readonly node: Sums; readonly key: Sums; readonly provider: Sums };
}

/** `sql`: run on its database when no call is open. */
export async function readCounted(
  fleet: Pick<Fleet, "any">,
  sql: (text: string) => Promise<string>,
): Promise<Counted> {
  const lines = async (text: string) =>
    (await sql(text)).split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t")]));
  const meters = await lines(
    "SELECT concat_ws(E'\\t', level, reserved, id) FROM tollgate.meter ORDER BY id",
  );
  const nodes = await lines(
    `SELECT concat_ws(E'\\t', coalesce(sum(e.cost), 0), w.id) FROM tollgate.entry e
      JOIN tollgate.node w ON w.epoch = e.node WHERE e.kind <> 0 GROUP BY w.id`,
  );
  const report = async (by: string): Promise<Sums> => {
    const { rows } = (await fleet.any().ask("ledger.totals", { by: [by] })) as unknown as {
      rows: readonly { by: Readonly<Record<string, string>>; costNano: string }[];
    };
    return new Map(rows.map((row) => [row.by[by] ?? "", BigInt(row.costNano)]));
  };
  return {
    meters: meters.map(([level, held, id]) => ({
      id: id!,
      level: BigInt(level!),
      held: BigInt(held!),
    })),
    sums: {
      node: new Map(nodes.map(([cost, id]) => [id!, BigInt(cost!)])),
      key: await report("key"),
      provider: await report("provider"),
    },
  };
}

/** Pure: returns the differences from the rows. */
export const miscounted = (
  entries: readonly LedgerEntry[],
  { meters, sums }: Counted,
): string[] => [
  ...metered(entries, meters),
  ...compared("gateway", sums.node, entries, ({ instance }) => instance ?? ""),
  ...compared("key", sums.key, entries, ({ key }) => key),
  ...compared("provider", sums.provider, entries, ({ target }) => target.provider),
];

/** Windows of one limit together, because a run may pass midnight. */
function metered(entries: readonly LedgerEntry[], meters: readonly Meter[]): string[] {
  const wrong: string[] = [];
  const levels = new Map<string, bigint>();
  for (const { id, level, held } of meters) {
    const [unit, per, , ...scope] = id.split("|");
    if (held !== 0n) wrong.push(`${id} holds ${held}, and no call is open`);
    // A limit that refills continuously leaves nothing to compare.
    if (per === "minute" || per === "hour" || per === "open") continue;
    const name = `${unit}|${scope.join("|")}`;
    levels.set(name, (levels.get(name) ?? 0n) + level);
  }
  const keys = new Map<string, { nano: bigint; calls: bigint }>();
  const add = (scope: string, { kind, costNano }: LedgerEntry) => {
    const of = keys.get(scope) ?? { nano: 0n, calls: 0n };
    keys.set(scope, of);
    of.nano += costNano ?? 0n;
    if (kind === "settle") of.calls++;
  };
  for (const entry of entries) {
    if (entry.kind === "reserve") continue;
    add(`key:${entry.key}`, entry);
    for (const account of entry.account?.split("/") ?? []) add(`account:${account}`, entry);
  }
  for (const [name, level] of levels) {
    const [unit, ...scope] = name.split("|");
    const of = keys.get(scope.join("|")) ?? { nano: 0n, calls: 0n };
    const said = unit === "nano_usd" ? of.nano : unit === "requests" ? of.calls : undefined;
    if (said === undefined) wrong.push(`${name}: no rows are known to be counted there`);
    else if (said !== level) wrong.push(`${name} has counted ${level}, and its rows are ${said}`);
  }
  return wrong;
}

function compared(
  what: string,
  sums: Sums,
  entries: readonly LedgerEntry[],
  of: (entry: LedgerEntry) => string,
): string[] {
  const rows = new Map<string, bigint>();
  for (const entry of entries)
    if (entry.kind !== "reserve")
      rows.set(of(entry), (rows.get(of(entry)) ?? 0n) + (entry.costNano ?? 0n));
  return [...new Set([...rows.keys(), ...sums.keys()])]
    .filter((name) => (rows.get(name) ?? 0n) !== (sums.get(name) ?? 0n))
    .map(
      (name) =>
        `${what} ${name}: ${sums.get(name) ?? 0n} in all, and rows of ${rows.get(name) ?? 0n}`,
    );
}
