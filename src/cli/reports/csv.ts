// Tables for spreadsheets and databases, as RFC 4180 has them: lines end with CR LF, and a cell with a comma, a quote or a line end
// stands in quotes.

/** What a spreadsheet takes for a formula, and runs. */
const FORMULA = /^[=+\-@\t\r]/;
/** A text that came from outside: it can never become a formula. */
export const textCell = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

const cell = (text: string): string =>
  /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** One line, with its end. Amounts and counts are given as they are, text through `textCell`. */
export const csvLine = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`;
