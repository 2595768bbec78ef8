// Parses CSV as in RFC 4180: comma-separated cells, quoted if they contain a comma, a quote, or a
// line end. One pass, character by character.
import { fail } from "tollgate/plugin";

/** Returns each line as an object whose keys are the cells of the first line. */
export function parseCsv(text: string): Record<string, string>[] {
  const [names, ...lines] = parseCells(text.replace(/^\uFEFF/, ""));
  if (!names) return [];
  return lines
    .filter((line) => line.length > 1 || line[0] !== "")
    .map((line) => Object.fromEntries(names.map((name, i) => [name.trim(), line[i] ?? ""])));
}

function parseCells(text: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  while (at < text.length) {
    const [cell, end] = text[at] === '"' ? readQuotedCell(text, at) : readPlainCell(text, at);
    line.push(cell);
    at = end;
    if (text[at] === ",") {
      at++;
      if (at === text.length) line.push("");
      continue;
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    lines.push(line);
    line = [];
  }
  if (line.length > 0) lines.push(line);
  return lines;
}

const CELL_END = /[,\r\n]/g;

function readPlainCell(text: string, from: number): [string, number] {
  CELL_END.lastIndex = from;
  const end = CELL_END.exec(text)?.index ?? text.length;
  return [text.slice(from, end), end];
}

function readQuotedCell(text: string, from: number): [string, number] {
  const parts: string[] = [];
  for (let at = from + 1; ;) {
    const end = text.indexOf('"', at);
    if (end < 0)
      return fail("invalid", "Invalid CSV: a quoted cell is not closed.", { code: "usage" });
    parts.push(text.slice(at, end));
    if (text[end + 1] !== '"') return [parts.join('"'), end + 1];
    at = end + 2;
  }
}
