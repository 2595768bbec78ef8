// What rows come to, as columns have them: the same on the way into an archive and out of it.
import type { ArchiveFacts, LedgerSum } from "tollgate/plugin";
import { createTotals, isCounted, type Summand } from "tollgate/store";
import { usageOf, type Columns } from "./rows.ts";
import { COLUMNS, COUNTED } from "./columns.ts";

const PLACES = Object.fromEntries(COLUMNS.map((name, i) => [name, i])) as Record<
  (typeof COLUMNS)[number],
  number
>;
const USED = [...COUNTED, "usage"] as const;
const KINDS = ["reserve", "settle", "adjust"] as const;

function summand(row: Columns): Summand {
  const of = (name: (typeof COLUMNS)[number]) => row[PLACES[name]] ?? null;
  const text = (name: (typeof COLUMNS)[number]) => of(name) ?? "";
  return {
    kind: KINDS[Number(of("kind"))]!,
    at: Number(of("at")),
    target: { provider: text("provider"), model: text("model"), credential: text("credential") },
    key: text("key"),
    labels: {},
    price: of("price"),
    state: text("state") as Summand["state"],
    outcome: text("outcome"),
    usage: usageOf(Object.fromEntries(USED.map((name) => [name, of(name)]))),
    costNano: of("cost") === null ? null : BigInt(text("cost")),
  };
}

/** Grows with each row. */
export class Tally {
  readonly #sums = createTotals([]);
  rows = 0;
  from: number | null = null;
  to: number | null = null;

  add(columns: Columns): void {
    const row = summand(columns);
    this.rows++;
    if (this.from === null || row.at < this.from) this.from = row.at;
    if (this.to === null || row.at > this.to) this.to = row.at;
    if (isCounted(row, undefined)) this.#sums.add(row);
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

  /** As the last line says it. */
  said() {
    const { rows, from, to, total } = this;
    return { rows, from, to, total: { ...total, costNano: String(total.costNano) } };
  }

  facts(after: string, head: string): ArchiveFacts {
    const { rows, from, to, total } = this;
    return { rows, from: from ?? undefined, to: to ?? undefined, after, head, total };
  }
}
