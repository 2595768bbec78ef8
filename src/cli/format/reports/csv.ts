// Writes CSV for spreadsheets and databases as in RFC 4180: lines end with CR LF, and cells with a
// comma or a quote are quoted.

import { escapeControls } from "../../../lib/text.ts";
import { LEDGER_UNITS } from "../../../model/usage.ts";
import { nanoToDecimal } from "../../../money/decimal.ts";
import type { LedgerEntry } from "../../../plugin/store/store.ts";

/** Characters with which a cell begins that a spreadsheet would run as a formula. */
const FORMULA_START = /^[=+\-@\t\r]/;
/** Returns untrusted text as a cell that no spreadsheet interprets as a formula. */
export const textCell = (text: string): string => (FORMULA_START.test(text) ? `'${text}` : text);

/** Quotes a cell and escapes control characters, because tables are also read on terminals. */
function quoteCell(cell: string): string {
  const text = escapeControls(cell);
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Returns one line with its line end. Pass amounts and counts unchanged, and text through
 * `textCell`.
 */
export const csvLine = (cells: readonly string[]): string =>
  `${cells.map(quoteCell).join(",")}\r\n`;

// Formats a ledger row as a CSV line. The columns of units and dollars add up to the totals of
// reports, to the nano-dollar.

/**
 * Later rows of a call repeat the numbers of earlier rows. Each number is written in only one line,
 * so that columns can be summed.
 */
const forKinds =
  (kinds: readonly LedgerEntry["kind"][], say: (entry: LedgerEntry) => string) =>
  (entry: LedgerEntry): string =>
    kinds.includes(entry.kind) ? say(entry) : "";

/** Amounts arrive as decimal strings. */
const usd = (nano: LedgerEntry["holdNano"]): string =>
  nano === undefined || nano === null ? "" : nanoToDecimal(BigInt(nano));

const COLUMNS: { readonly [name: string]: (entry: LedgerEntry) => string } = {
  seq: ({ seq }) => String(seq),
  at: ({ at }) => new Date(at).toISOString(),
  kind: ({ kind }) => kind,
  attempt: ({ attempt }) => textCell(attempt),
  request: ({ request }) => textCell(request),
  key: ({ key }) => textCell(key),
  account: ({ account }) => textCell(account ?? ""),
  provider: ({ target }) => textCell(target.provider),
  model: ({ target }) => textCell(target.model),
  credential: ({ target }) => textCell(target.credential),
  frontend: ({ clientRequest }) => textCell(clientRequest?.frontend ?? ""),
  state: ({ state }) => state,
  outcome: ({ outcome }) => textCell(outcome),
  finish: ({ finish }) => textCell(finish ?? ""),
  ...Object.fromEntries(
    LEDGER_UNITS.map((unit) => [
      unit,
      forKinds(["settle"], ({ usage }) => String(usage[unit] ?? "")),
    ]),
  ),
  usd: forKinds(["settle", "adjust"], ({ costNano }) => usd(costNano)),
  hold_usd: forKinds(["reserve"], ({ holdNano }) => usd(holdNano)),
  upstream_usd: forKinds(["settle"], ({ upstreamCostNano }) => usd(upstreamCostNano)),
  price: ({ price }) => textCell(price ?? ""),
  upstream_id: ({ upstreamId }) => textCell(upstreamId ?? ""),
  labels: ({ labels }) => JSON.stringify(labels),
  reason: ({ reason }) => textCell(reason ?? ""),
  actor: ({ actor }) => textCell(actor ?? ""),
};

export const ROW_COLUMNS: readonly string[] = Object.keys(COLUMNS);

export const rowCsvLine = (entry: LedgerEntry): string =>
  csvLine(Object.values(COLUMNS).map((cell) => cell(entry)));
