// Prints to a terminal or a pipe. Results go to stdout, remarks to stderr. Color is used only on a
// terminal.
import { stripVTControlCharacters, styleText } from "node:util";
import { escapeControlsInLines } from "../../lib/text.ts";

type Style = Parameters<typeof styleText>[0];

const ESCAPE = "\u001b";
const COLOR_SEQUENCE = new RegExp(`(${ESCAPE}\\[[\\d;]*m)`);

/**
 * Removes control sequences, because names and labels are data that may contain sequences that
 * control a terminal. Keeps only colors, and only if `isColored`.
 */
export function toPrintable(text: string, isColored: boolean): string {
  if (!isColored || !text.includes(ESCAPE)) return escapeControlsInLines(text);
  return text
    .split(COLOR_SEQUENCE)
    .map((part, i) => (i % 2 === 1 ? part : escapeControlsInLines(part)))
    .join("");
}

/**
 * Prints a line to stdout. All commands print through this function, except for CSV (`csv.ts`),
 * whose lines end with CR LF.
 */
export const print = (text = ""): void =>
  void process.stdout.write(`${toPrintable(text, paint("red", "x") !== "x")}\n`);
export const printRemark = (text: string): void =>
  void process.stderr.write(`${toPrintable(text, paintRemark("red", "x") !== "x")}\n`);
export const printJson = (value: unknown): void =>
  print(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each), 2));

/** Keeps a process alive after its terminal is closed, when every write fails. */
export function ignoreTerminalErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** Styles text for stdout. `styleText` handles terminal detection and NO_COLOR. */
export const paint = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });
export const paintRemark = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr });

const MIN_WIDTH = 40;
const MAX_WIDTH = 100;

/**
 * Returns the width of the terminal on stdout. If stdout is a pipe, returns COLUMNS or the usual
 * width of a terminal.
 */
export function terminalWidth(): number {
  const width = process.stdout.columns ?? Number(process.env["COLUMNS"]);
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, width > 0 ? width : 80));
}

/** Aligns rows in columns that are as wide as their widest cells. The last column is not padded. */
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

/**
 * Cuts a line to a number of characters. Color sequences have no width, and colors end with the
 * line.
 */
export function truncateLine(line: string, width: number): string {
  if (stripVTControlCharacters(line).length <= width) return line;
  let seen = 0;
  let cut = "";
  // Split the line into color sequences and text.
  for (const part of line.split(COLOR_SEQUENCE)) {
    if (part.startsWith(ESCAPE)) cut += part;
    else {
      cut += part.slice(0, width - seen);
      seen += Math.min(part.length, width - seen);
    }
  }
  return cut;
}

/**
 * Replaces control characters, line ends, and direction marks with dots, so that text of a client
 * can be shown safely in one line.
 */
export const sanitize = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "·");

/** Formats a time: "2026-11-21 09:30:00 UTC". */
export const formatTime = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

// Formats bytes and durations for people.
const UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** Formats a number of bytes: "12.3 MB". */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1_000 && unit < UNITS.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${UNITS[unit]}`;
}

/** "0.4 s" */
export const formatSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
