// Forecast of the usage page: spend per day, the end of the month, and exhausted budgets.
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Box, Figures } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { formatCount, formatDateTime, formatUsd } from "../../format.ts";

interface BudgetForecast {
  readonly subject: string;
  readonly id: string;
  readonly name?: string;
  readonly limit: string;
  readonly usedUsd: string;
  readonly perDayUsd: string;
  readonly exhaustsAt: string | null;
}
interface SpendForecast {
  readonly perDayUsd: string;
  readonly days: number;
  readonly month: { readonly spentUsd: string; readonly projectedUsd: string };
  readonly budgets: readonly BudgetForecast[];
}

const EVERY_MS = 60_000;
/** Number of budgets to show first. */
const FEW = 5;

export function UsageForecast({ account }: { account?: string | undefined }) {
  const { value } = useQuery<SpendForecast>("usage.forecast", account ? { account } : {}, {
    intervalMs: EVERY_MS,
  });
  if (!value) return null;
  const { perDayUsd, days, month, budgets } = value;
  const ending = budgets.filter(({ exhaustsAt }) => exhaustsAt !== null);
  return html`<${Figures}
      of=${[
        {
          name: "Spend per day",
          value: dollars(perDayUsd),
          title: `$${perDayUsd}`,
          note: days === 0 ? "mean of today" : `mean of ${formatCount(days)} days`,
        },
        {
          name: "This month (UTC)",
          value: dollars(month.spentUsd),
          title: `$${month.spentUsd}`,
          note: `${dollars(month.projectedUsd)} projected`,
        },
        {
          name: "Budgets that run out",
          value: formatCount(ending.length),
          note: ending[0] ? `first ${formatDateTime(Date.parse(ending[0].exhaustsAt!))}` : "",
          tone: ending.length > 0 ? "warn" : "",
        },
      ]}
    />
    ${
      ending.length > 0 &&
      html`<${Box} title="Budgets that run out before they reset" flush=${true}>
        <${Table}
          label="Budgets that run out before they reset, soonest first"
          columns=${COLUMNS}
          rows=${ending}
          initialRows=${FEW}
          rowId=${({ subject, id, limit }: BudgetForecast) => `${subject} ${id} ${limit}`}
        />
      <//>`
    }`;
}

const dollars = (usd: string): string => formatUsd(Number(usd) * 1e9);

const COLUMNS: readonly Column<BudgetForecast>[] = [
  {
    name: "Budget",
    isRowHeader: true,
    render: ({ subject, id, name }) =>
      html`<span class="cut" title=${id}>${subject} ${name ?? id}</span>`,
  },
  { name: "Limit", render: ({ limit }) => limit },
  {
    name: "Used",
    isNumber: true,
    sortKey: ({ usedUsd }) => Number(usedUsd),
    render: ({ usedUsd }) => dollars(usedUsd),
  },
  {
    name: "Per day",
    isNumber: true,
    sortKey: ({ perDayUsd }) => Number(perDayUsd),
    render: ({ perDayUsd }) => dollars(perDayUsd),
  },
  {
    name: "Runs out",
    sortKey: ({ exhaustsAt }) => exhaustsAt ?? "",
    render: ({ exhaustsAt }) =>
      html`<span class="nowrap">${formatDateTime(Date.parse(exhaustsAt!))}</span>`,
  },
];
