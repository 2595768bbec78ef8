// Tables for spreadsheets and databases, as RFC 4180 has them: lines end with CR LF, and a cell with a comma or a quote is quoted.

import { visible } from "../../lib/text.ts";

/** What a spreadsheet takes for a formula, and runs. */
const FORMULA = /^[=+\-@\t\r]/;
/** A text that came from outside: it can never become a formula. */
export const textCell = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** Control characters are shown as what they are: a table is read on terminals too. */
function cell(said: string): string {
  const text = visible(said);
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line, with its end. Amounts and counts are given as they are, text through `textCell`. */
export const csvLine = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`;
