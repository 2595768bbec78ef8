// A JSON log line as words for a terminal.
import { styleText } from "node:util";
import { visible } from "./text.ts";

const COLOUR = { debug: "gray", info: "green", warn: "yellow", error: "red" } as const;

const paint = (style: Parameters<typeof styleText>[0], text: string) =>
  styleText(style, text, { stream: process.stdout });

/** A line that is not ours passes as it is. */
export function pretty(line: string): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return line;
  }
  const { level, time, msg, error, ...rest } = entry;
  const label = `${level as string}`;
  const [sentences, others] = parted(Object.entries(rest));
  const words = [
    paint("gray", clock(`${time as string}`)),
    paint(COLOUR[label as keyof typeof COLOUR] ?? "gray", label.padEnd(5)),
    visible(`${msg as string}`),
    ...others.map(([key, value]) => paint("gray", `${key}=`) + inline(value)),
  ];
  const below = sentences.map((text) => `  ${visible(text)}\n`).join("");
  return `${words.join(" ")}\n${below}${error === undefined ? "" : indented(error)}`;
}

/** A list of sentences reads best with a line for each. */
function parted(entries: readonly [string, unknown][]): [string[], [string, unknown][]] {
  const isSentence = (value: unknown) => typeof value === "string" && value.includes(" ");
  const isSentences = ([, value]: [string, unknown]) =>
    Array.isArray(value) && value.length > 0 && value.every(isSentence);
  const { yes = [], no = [] } = Object.groupBy(entries, (e) => (isSentences(e) ? "yes" : "no"));
  return [yes.flatMap(([, value]) => value as string[]), no];
}

function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toTimeString().slice(0, 8);
}

function inline(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[^\s"=]+$/.test(text) ? visible(text) : visible(JSON.stringify(value));
}

function indented(error: unknown): string {
  if (typeof error !== "object" || error === null) return `  ${inline(error)}\n`;
  const { name, message, stack, cause } = error as Record<string, unknown>;
  const lines = [`${name as string}: ${message as string}`, ...`${stack ?? ""}`.split("\n")];
  const own = lines
    .filter(Boolean)
    .map((text, i) => (i === 0 ? `  ${visible(text)}` : paint("gray", `    ${visible(text)}`)))
    .join("\n");
  return `${own}\n${cause === undefined ? "" : indented(cause)}`;
}
