// Reads a CSV file as records by column name, with quoted fields that may contain line breaks.

/** Fields of a row, by the name of the column in lowercase. */
export type CsvRow = ReadonlyMap<string, string>;

/** Yields the rows of a text. The first row contains the names of the columns. */
export function* readCsv(text: string): Generator<CsvRow, void> {
  const rows = splitRows(text.replace(/^\uFEFF/, ""));
  const first = rows.next();
  if (first.done) return;
  const names = first.value.map((name) => name.toLowerCase());
  for (const row of rows) {
    if (row.length === 1 && row[0] === "") continue;
    yield new Map(names.map((name, i) => [name, row[i] ?? ""]));
  }
}

function* splitRows(text: string): Generator<string[], void> {
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    let field = "";
    if (text[at] === '"') {
      let end = at + 1;
      for (;;) {
        const quote = text.indexOf('"', end);
        if (quote < 0) throw new Error("a quoted field of the file does not end");
        field += text.slice(end, quote);
        end = quote + 1;
        if (text[end] !== '"') break;
        field += '"';
        end++;
      }
      at = end;
    } else {
      let end = at;
      while (end < text.length && text[end] !== "," && text[end] !== "\n" && text[end] !== "\r")
        end++;
      field = text.slice(at, end);
      at = end;
    }
    row.push(field);
    if (text[at] === ",") {
      at++;
      if (at < text.length) continue;
      row.push("");
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    yield row;
    row = [];
  }
}

/** Returns the first of these columns that has a value. Column names are compared without case. */
export function columnOf(row: CsvRow, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = row.get(name.toLowerCase());
    if (value !== undefined && value !== "") return value;
  }
  return undefined;
}
