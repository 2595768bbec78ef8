// Words on a terminal, or in a pipe. Answers go to stdout, remarks to stderr; colour only on a terminal.
import { stripVTControlCharacters, styleText } from "node:util";

import { escapeControlsInLines } from "../../lib/text.ts";

type Style = Parameters<typeof styleText>[0];

const ESCAPE = "\u001b";
const COLOR_SEQUENCE = new RegExp(`(${ESCAPE}\\[[\\d;]*m)`);

/**
 * Text as it may be printed, whatever it was made of: names and labels are data, and data may hold what steers a terminal. Only
 * colors are left, and only where we print some.
 */
export function toPrintable(text: string, isColored: boolean): string {
  if (!isColored || !text.includes(ESCAPE)) return escapeControlsInLines(text);
  return text
    .split(COLOR_SEQUENCE)
    .map((part, i) => (i % 2 === 1 ? part : escapeControlsInLines(part)))
    .join("");
}

/** One gate for all that the commands print. `csv.ts` has its own, for lines that end with CR LF. */
export const print = (text = ""): void =>
  void process.stdout.write(`${toPrintable(text, paint("red", "x") !== "x")}\n`);
export const printRemark = (text: string): void =>
  void process.stderr.write(`${toPrintable(text, paintRemark("red", "x") !== "x")}\n`);
export const printJson = (value: unknown): void =>
  print(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each), 2));

/** Keeps a process alive whose terminal is gone: every write to it fails. */
export function ignoreTerminalErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** For stdout. `styleText` knows terminals, NO_COLOR and the rest. */
export const paint = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });
export const paintRemark = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr });

const MIN_WIDTH = 40;
const MAX_WIDTH = 100;

/** Of the terminal that reads stdout; in a pipe what COLUMNS says, or what most terminals have. */
export function terminalWidth(): number {
  const said = process.stdout.columns ?? Number(process.env["COLUMNS"]);
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, said > 0 ? said : 80));
}

/** Rows under each other, each column as wide as its widest cell; the last one runs on. */
export function alignColumns(rows: readonly (readonly string[])[], indent = ""): string {
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
export function truncateLine(line: string, width: number): string {
  if (stripVTControlCharacters(line).length <= width) return line;
  let seen = 0;
  let cut = "";
  // Colours, and what stands between them.
  for (const part of line.split(COLOR_SEQUENCE)) {
    if (part.startsWith(ESCAPE)) cut += part;
    else {
      cut += part.slice(0, width - seen);
      seen += Math.min(part.length, width - seen);
    }
  }
  return cut;
}

/** A client's word as it may stand in a line: what could move the cursor, end the line or turn it around is a dot. */
export const sanitize = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "·");

/** "2026-11-21 09:30:00 UTC" */
export const formatTime = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
