// Formats an invoice as a printable HTML page without scripts or external resources.
import { formatDecimal } from "../../../money/decimal.ts";

export interface InvoiceLine {
  readonly day: string;
  readonly model: string;
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly usdNano: bigint;
  /** Units of the currency per US dollar on the day. */
  readonly rate: string;
  /** In billionths of the currency, with the margin. */
  readonly amount: bigint;
}

export interface Invoice {
  readonly account: string;
  readonly month: string;
  readonly currency: string;
  /** In percent. */
  readonly margin: string;
  readonly lines: readonly InvoiceLine[];
  readonly usdNano: bigint;
  readonly amount: bigint;
  readonly unpriced: number;
  readonly estimated: number;
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const STYLE = `
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #ccc; padding: 0.3rem 0.5rem; text-align: right; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
tfoot td { border-top: 2px solid #000; font-weight: bold; }
thead { display: table-header-group; }
tr { break-inside: avoid; }`;

export function formatInvoicePage(invoice: Invoice): string {
  const { account, month, currency, lines, unpriced } = invoice;
  const amount = (value: bigint) => formatDecimal(value, 9, 2);
  const cells = (...texts: readonly string[]) =>
    texts.map((text) => `<td>${escapeHtml(text)}</td>`).join("");
  const rows = lines.map(
    (line) =>
      `<tr>${cells(line.day, line.model, line.calls.toLocaleString("en"), line.input.toLocaleString("en"), line.output.toLocaleString("en"), line.rate, amount(line.amount))}</tr>`,
  );
  const title = escapeHtml(`Invoice ${account} ${month}`);
  const note =
    unpriced === 0
      ? ""
      : `<p>Not included: ${unpriced.toLocaleString("en")} calls without a known price.</p>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${title}</title><style>${STYLE}
</style></head>
<body>
<h1>${title}</h1>
<table>
<thead><tr><th>Day</th><th>Model</th><th>Calls</th><th>Input tokens</th><th>Output tokens</th><th>Rate</th><th>${escapeHtml(currency)}</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
<tfoot><tr>${cells("Total", "", "", "", "", "", amount(invoice.amount))}</tr></tfoot>
</table>
${note}
</body>
</html>`;
}
