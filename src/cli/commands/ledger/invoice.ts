// Writes the invoice of an account for one month, in the currency and with the margin of its view.
import { fail } from "../../../model/error.ts";
import { inputTokens, outputTokens, type LedgerUnit } from "../../../model/usage.ts";
import type { UsageSums } from "../../../admin/commands/ledger-commands.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { configFile, requireGatewayConfig } from "../../support/load-config.ts";
import {
  formatAmount,
  openAccountView,
  openNamedView,
  type CurrencyView,
} from "../../support/currency-view.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import { csvLine, textCell } from "../../format/reports/csv.ts";
import {
  formatInvoicePage,
  type Invoice,
  type InvoiceLine,
} from "../../format/reports/invoice-page.ts";
import {
  alignColumns,
  paint,
  paintRemark,
  print,
  printJson,
  printRemark,
} from "../../format/terminal.ts";
import { plural } from "../../../lib/text.ts";

export const command: CliCommand = {
  usage: "invoice [options]",
  description:
    "Writes the charges of an account in one month, in the currency and with the margin of its view. Each charge is converted at the rate of its day. Uses the running gateway, or its store if no gateway is running.",
  options: {
    account: { placeholder: "account", description: "Account, with the accounts nested under it" },
    month: { placeholder: "month", description: "Month in UTC, such as 2026-11" },
    view: {
      placeholder: "name",
      description: "View under `views`. Default: the view of the account, or US dollars",
    },
    csv: { description: "Write a CSV table" },
    html: { description: "Write a printable page" },
    ...GATEWAY_OPTIONS,
  },
  examples: [
    "tollgate invoice --account acme --month 2026-10",
    "tollgate invoice --account acme --month 2026-10 --html > invoice.html",
  ],
  async run(given) {
    const [account, month] = [given.getText("account"), given.getText("month")];
    const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month ?? "") ?? [];
    if (account === undefined || year === undefined)
      return fail(
        "invalid",
        "Pass --account and --month, such as 2026-11. See tollgate invoice --help.",
        {
          code: "usage",
        },
      );
    const { config } = await requireGatewayConfig(configFile(given));
    const name = given.getText("view");
    const view = await (name === undefined
      ? openAccountView(config, account)
      : openNamedView(config, name));
    await using store = await openStoreAccess(given);
    const query = {
      account,
      from: Date.UTC(Number(year), Number(number) - 1, 1),
      to: Date.UTC(Number(year), Number(number), 1),
      by: ["day", "model"],
    };
    const [sums, external] = (await Promise.all([
      store.run("ledger.totals", query),
      store.run("ledger.totals", { ...query, state: "external" }),
    ])) as unknown as [UsageSums, UsageSums];
    const charged = withoutExternal(sums, external);
    const invoice = createInvoice({ account, month: month!, view }, charged);
    printInvoice(given, invoice);
    return EXIT_CODES.ok;
  },
};

/** Returns the sums without the calls that clients paid with their own credentials. */
export function withoutExternal(
  sums: Pick<UsageSums, "rows" | "total">,
  external: Pick<UsageSums, "rows">,
): Pick<UsageSums, "rows" | "total"> {
  const lineOf = ({ by }: UsageSums["rows"][number]) => `${by["day"]} ${by["model"]}`;
  const excluded = new Map(external.rows.map((row) => [lineOf(row), row]));
  const rows = sums.rows.flatMap((row) => {
    const other = excluded.get(lineOf(row));
    if (!other) return [row];
    if (other.calls >= row.calls) return [];
    const usage = Object.fromEntries(
      Object.entries(row.usage).map(([unit, count]) => [
        unit,
        (count ?? 0) - (other.usage[unit as LedgerUnit] ?? 0),
      ]),
    );
    return [{ ...row, calls: row.calls - other.calls, usage }];
  });
  return { rows, total: sums.total };
}

interface InvoiceOptions {
  readonly account: string;
  readonly month: string;
  readonly view: CurrencyView;
}

/** The total is the sum of the lines, so that it can be checked by hand. */
export function createInvoice(
  { account, month, view }: InvoiceOptions,
  { rows, total }: Pick<UsageSums, "rows" | "total">,
): Invoice {
  const lines = rows
    .map(({ by, calls, usage, costNano }): InvoiceLine => {
      const day = by["day"] ?? "";
      const nano = BigInt(costNano);
      return {
        day,
        model: by["model"] ?? "",
        calls,
        input: inputTokens(usage),
        output: outputTokens(usage),
        usdNano: nano,
        rate: view.rateOn(day),
        amount: view.amount(nano, day),
      };
    })
    .toSorted((a, b) => (`${a.day} ${a.model}` < `${b.day} ${b.model}` ? -1 : 1));
  return {
    account,
    month,
    currency: view.currency,
    margin: view.margin,
    lines,
    usdNano: lines.reduce((sum, { usdNano }) => sum + usdNano, 0n),
    amount: lines.reduce((sum, { amount }) => sum + amount, 0n),
    unpriced: total.unpriced,
    estimated: total.estimated,
  };
}

function printInvoice(given: CliInput, invoice: Invoice): void {
  const { account, month, currency, margin, lines, unpriced } = invoice;
  if (given.json)
    return printJson({
      account,
      month,
      currency,
      margin,
      lines: lines.map(({ usdNano, amount, ...line }) => ({
        ...line,
        usd: formatAmount(usdNano),
        amount: formatAmount(amount),
      })),
      usd: formatAmount(invoice.usdNano),
      amount: formatAmount(invoice.amount),
      unpriced,
      estimated: invoice.estimated,
    });
  if (given.has("html")) return print(formatInvoicePage(invoice));
  if (given.has("csv")) {
    let text = csvLine([
      "day",
      "model",
      "calls",
      "input_tokens",
      "output_tokens",
      "usd",
      "rate",
      "margin_percent",
      "amount",
      "currency",
    ]);
    for (const line of lines)
      text += csvLine([
        line.day,
        textCell(line.model),
        String(line.calls),
        String(line.input),
        String(line.output),
        formatAmount(line.usdNano),
        line.rate,
        margin,
        formatAmount(line.amount),
        currency,
      ]);
    process.stdout.write(text);
  } else
    print(
      alignColumns([
        ["day", "model", "calls", "usd", "rate", currency.toLowerCase()].map((title) =>
          paint("gray", title),
        ),
        ...lines.map((line) => [
          line.day,
          line.model,
          line.calls.toLocaleString("en"),
          formatAmount(line.usdNano),
          line.rate,
          formatAmount(line.amount),
        ]),
        ["total", "", "", formatAmount(invoice.usdNano), "", formatAmount(invoice.amount)],
      ]),
    );
  if (unpriced > 0)
    printRemark(
      paintRemark(
        "yellow",
        `The invoice does not include ${plural(unpriced, "call")} without a known price.`,
      ),
    );
}
