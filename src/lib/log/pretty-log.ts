// Formats JSON log lines as text for a terminal.
import { styleText } from "node:util";
import { escapeControls } from "../text.ts";

const LEVEL_COLOR = { debug: "gray", info: "green", warn: "yellow", error: "red" } as const;

const paint = (style: Parameters<typeof styleText>[0], text: string) =>
  styleText(style, text, { stream: process.stdout });

/** Formats one line. A line that is not JSON is returned unchanged. */
export function formatLogLine(line: string): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return line;
  }
  const { level, time, msg, error, ...rest } = entry;
  const label = `${level as string}`;
  const [sentences, others] = splitSentences(Object.entries(rest));
  const words = [
    paint("gray", formatTime(`${time as string}`)),
    paint(LEVEL_COLOR[label as keyof typeof LEVEL_COLOR] ?? "gray", label.padEnd(5)),
    escapeControls(`${msg as string}`),
    ...others.map(([key, value]) => paint("gray", `${key}=`) + formatValue(value)),
  ];
  const below = sentences.map((text) => `  ${escapeControls(text)}\n`).join("");
  return `${words.join(" ")}\n${below}${error === undefined ? "" : formatError(error)}`;
}

/** Separates fields that are lists of sentences. Each sentence is printed on a separate line. */
function splitSentences(entries: readonly [string, unknown][]): [string[], [string, unknown][]] {
  const isSentence = (value: unknown) => typeof value === "string" && value.includes(" ");
  const isSentences = ([, value]: [string, unknown]) =>
    Array.isArray(value) && value.length > 0 && value.every(isSentence);
  const { yes = [], no = [] } = Object.groupBy(entries, (e) => (isSentences(e) ? "yes" : "no"));
  return [yes.flatMap(([, value]) => value as string[]), no];
}

function formatTime(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toTimeString().slice(0, 8);
}

function formatValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[^\s"=]+$/.test(text) ? escapeControls(text) : escapeControls(JSON.stringify(value));
}

function formatError(error: unknown): string {
  if (typeof error !== "object" || error === null) return `  ${formatValue(error)}\n`;
  const { name, message, stack, cause } = error as Record<string, unknown>;
  const lines = [`${name as string}: ${message as string}`, ...`${stack ?? ""}`.split("\n")];
  const own = lines
    .filter(Boolean)
    .map((text, i) =>
      i === 0 ? `  ${escapeControls(text)}` : paint("gray", `    ${escapeControls(text)}`),
    )
    .join("\n");
  return `${own}\n${cause === undefined ? "" : formatError(cause)}`;
}
