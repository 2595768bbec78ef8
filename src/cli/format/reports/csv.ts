// Tables for spreadsheets and databases, as RFC 4180 has them: lines end with CR LF, and a cell with a comma or a quote is quoted.

import { escapeControls } from "../../../lib/text.ts";

/** What a spreadsheet takes for a formula, and runs. */
const FORMULA_START = /^[=+\-@\t\r]/;
/** A text that came from outside: it can never become a formula. */
export const textCell = (text: string): string => (FORMULA_START.test(text) ? `'${text}` : text);

/** Control characters are shown as what they are: a table is read on terminals too. */
function quoteCell(said: string): string {
  const text = escapeControls(said);
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line, with its end. Amounts and counts are given as they are, text through `textCell`. */
export const csvLine = (cells: readonly string[]): string =>
  `${cells.map(quoteCell).join(",")}\r\n`;
