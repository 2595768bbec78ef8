// Words on a terminal, or in a pipe. Answers go to stdout, remarks to stderr; colour only on a terminal.
import { stripVTControlCharacters, styleText } from "node:util";

import { visibleLines } from "../lib/text.ts";

type Style = Parameters<typeof styleText>[0];

const ESCAPE = "\u001b";
const COLOUR = new RegExp(`(${ESCAPE}\\[[\\d;]*m)`);

/**
 * Text as it may be printed, whatever it was made of: names and labels are data, and data may hold what steers a terminal. Only
 * colors are left, and only where we print some.
 */
export function printable(text: string, isColored: boolean): string {
  if (!isColored || !text.includes(ESCAPE)) return visibleLines(text);
  return text
    .split(COLOUR)
    .map((part, i) => (i % 2 === 1 ? part : visibleLines(part)))
    .join("");
}

/** One gate for all that the commands print. `csv.ts` has its own, for lines that end with CR LF. */
export const say = (text = ""): void =>
  void process.stdout.write(`${printable(text, paint("red", "x") !== "x")}\n`);
export const remark = (text: string): void =>
  void process.stderr.write(`${printable(text, paintRemark("red", "x") !== "x")}\n`);
export const sayJson = (value: unknown): void =>
  say(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each), 2));

/** Keeps a process alive whose terminal is gone: every write to it fails. */
export function outliveTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** For stdout. `styleText` knows terminals, NO_COLOR and the rest. */
export const paint = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });
export const paintRemark = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr });

const NARROWEST = 40;
const WIDEST = 100;

/** Of the terminal that reads stdout; in a pipe what COLUMNS says, or what most terminals have. */
export function widthOf(): number {
  const said = process.stdout.columns ?? Number(process.env["COLUMNS"]);
  return Math.min(WIDEST, Math.max(NARROWEST, said > 0 ? said : 80));
}

/** Rows under each other, each column as wide as its widest cell; the last one runs on. */
export function columns(rows: readonly (readonly string[])[], indent = ""): string {
  const width = (text: string) => stripVTControlCharacters(text).length;
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, i) => Math.max(most[i] ?? 0, width(cell))),
    [],
  );
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell + (i === row.length - 1 ? "" : " ".repeat(widths[i]! - width(cell))))
        .join("  "),
    )
    .map((line) => indent + line.trimEnd())
    .join("\n");
}

/** The beginning of a line, so many characters wide; colours take no room, and end with it. */
export function truncated(line: string, width: number): string {
  if (stripVTControlCharacters(line).length <= width) return line;
  let seen = 0;
  let cut = "";
  // Colours, and what stands between them.
  for (const part of line.split(COLOUR)) {
    if (part.startsWith(ESCAPE)) cut += part;
    else {
      cut += part.slice(0, width - seen);
      seen += Math.min(part.length, width - seen);
    }
  }
  return cut;
}

/** A client's word as it may stand in a line: what could move the cursor, end the line or turn it around is a dot. */
export const clean = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "·");

/** "2026-11-21 09:30:00 UTC" */
export const moment = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
