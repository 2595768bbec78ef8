// Writes CSV for spreadsheets and databases as in RFC 4180: lines end with CR LF, and cells with a
// comma or a quote are quoted.

import { escapeControls } from "../../../lib/text.ts";

/** Characters at which a spreadsheet takes a cell for a formula and runs it. */
const FORMULA_START = /^[=+\-@\t\r]/;
/** Returns text from outside as a cell that no spreadsheet takes for a formula. */
export const textCell = (text: string): string => (FORMULA_START.test(text) ? `'${text}` : text);

/** Quotes a cell and escapes control characters, because tables are also read on terminals. */
function quoteCell(said: string): string {
  const text = escapeControls(said);
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Returns one line with its line end. Pass amounts and counts as they are, and text through
 * `textCell`.
 */
export const csvLine = (cells: readonly string[]): string =>
  `${cells.map(quoteCell).join(",")}\r\n`;
