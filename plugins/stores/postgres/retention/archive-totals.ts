// Computes the totals of archived rows from their columns. Used for writing and for reading
// archives.
import type { ArchiveInfo, LedgerSum } from "tollgate/plugin";
import { createTotals, isSettledRow, type SummableRow } from "tollgate/store";
import { decodeUsage, type ColumnValues } from "../rows/row-codec.ts";
import { ALL_COLUMNS, UNIT_COLUMNS } from "../rows/columns.ts";

const COLUMN_INDEX = Object.fromEntries(ALL_COLUMNS.map((name, i) => [name, i])) as Record<
  (typeof ALL_COLUMNS)[number],
  number
>;
const USAGE_COLUMNS = [...UNIT_COLUMNS, "usage"] as const;
const ROW_KINDS = ["reserve", "settle", "adjust"] as const;

function toSummableRow(row: ColumnValues): SummableRow {
  const of = (name: (typeof ALL_COLUMNS)[number]) => row[COLUMN_INDEX[name]] ?? null;
  const text = (name: (typeof ALL_COLUMNS)[number]) => of(name) ?? "";
  return {
    kind: ROW_KINDS[Number(of("kind"))]!,
    at: Number(of("at")),
    target: { provider: text("provider"), model: text("model"), credential: text("credential") },
    key: text("key"),
    labels: {},
    price: of("price"),
    state: text("state") as SummableRow["state"],
    outcome: text("outcome"),
    usage: decodeUsage(Object.fromEntries(USAGE_COLUMNS.map((name) => [name, of(name)]))),
    costNano: of("cost") === null ? null : BigInt(text("cost")),
  };
}

/** Totals that grow with each row. */
export class ArchiveTotals {
  readonly #sums = createTotals([]);
  rows = 0;
  from: number | null = null;
  to: number | null = null;

  add(columns: ColumnValues): void {
    const row = toSummableRow(columns);
    this.rows++;
    if (this.from === null || row.at < this.from) this.from = row.at;
    if (this.to === null || row.at > this.to) this.to = row.at;
    if (isSettledRow(row, undefined)) this.#sums.add(row);
  }

  get total(): LedgerSum {
    const [total] = this.#sums.totals();
    return {
      calls: total?.calls ?? 0,
      usage: total?.usage ?? {},
      costNano: total?.costNano ?? 0n,
      unpriced: total?.unpriced ?? 0,
    };
  }

  /** Returns the totals in the form of the last line. */
  footer() {
    const { rows, from, to, total } = this;
    return { rows, from, to, total: { ...total, costNano: String(total.costNano) } };
  }

  facts(after: string, head: string): ArchiveInfo {
    const { rows, from, to, total } = this;
    return {
      rows,
      from: from ?? undefined,
      to: to ?? undefined,
      previousHash: after,
      lastHash: head,
      total,
    };
  }
}
