// Findings as what people and machines read: in file order, each with its line, its column and a piece of the file.
// No secret that stands in a file is repeated: logs are read more widely than files.
import { relative } from "node:path";
import { styleText } from "node:util";
import { codeFrame } from "../lib/text.ts";
import { count } from "./problems.ts";
import type { SourceFinding } from "./source.ts";
import type { SourceFile, Spot } from "./spot.ts";
import { pathOf } from "./tree.ts";
import type { Located } from "./types.ts";

export interface Locating {
  readonly root: unknown;
  /** In the order read. */
  readonly files: readonly string[];
  /** Literal secrets. */
  readonly hide: readonly Spot[];
}

export function locateAll(findings: readonly SourceFinding[], of: Locating): readonly Located[] {
  const shown = new Map<SourceFile, readonly string[]>();
  const all = findings.map(({ words, file, pointer, spot }): Located => {
    const path = pathOf(of.root, pointer);
    if (!spot) return Object.freeze({ ...words, file, line: 0, column: 0, path });
    const { line, col: column } = spot.source.lines.linePos(spot.start);
    const lines = shown.get(spot.source) ?? masked(spot.source, of.hide).split(/\r?\n/);
    shown.set(spot.source, lines);
    const frame = codeFrame(lines, { line, column, length: spot.end - spot.start });
    return Object.freeze({ ...words, file: spot.source.file, line, column, path, frame });
  });
  const once = new Map(all.map((p) => [`${p.id} ${p.file}:${p.line}:${p.column} ${p.message}`, p]));
  return inFileOrder([...once.values()], of.files);
}

/** `files`: in the order read. */
export function inFileOrder(
  problems: readonly Located[],
  files: readonly string[],
): readonly Located[] {
  const order = (p: Located) => files.indexOf(p.file);
  return Object.freeze(
    problems.toSorted((a, b) => order(a) - order(b) || a.line - b.line || a.column - b.column),
  );
}

/** Keys that mostly hold one, for files that could not be understood far enough to know. */
const KEY = String.raw`\b[\w-]*(?:key|token|secret|passw|credential)[\w-]*["']?[ \t]*:[ \t]*(?!-\})`;
const SUSPECT = new RegExp(`(${KEY})(["']?)([^\\s"'{[&*$#|>,][^"',}#\\r\\n]*)`, "gi");
const SUSPECT_DEFAULT = new RegExp(String.raw`(${KEY}["']?\$\{env:\w+:-)([^}\r\n]+)`, "gi");

/** The same text, of the same length, without its secrets. */
function masked(source: SourceFile, hide: readonly Spot[]): string {
  let text = source.text;
  for (const { source: its, start, end } of hide)
    if (its === source)
      text = text.slice(0, start) + withoutLiterals(text.slice(start, end)) + text.slice(end);
  return text
    .replace(SUSPECT, (whole, key: string, open: string, value: string) =>
      /^(\d+|true|false|null)\s*$/.test(value) ? whole : key + open + stars(value),
    )
    .replace(SUSPECT_DEFAULT, (_, before: string, value: string) => before + stars(value));
}

/** References may be shown; a default, and the text around them, may not. */
const withoutLiterals = (text: string): string =>
  text.replace(/\$\{[^}]*\}|[^$]+|\$/g, (piece) =>
    piece.startsWith("${")
      ? piece.replace(/(:-)(.+)\}$/s, (_, dash: string, value: string) => `${dash}${stars(value)}}`)
      : stars(piece),
  );

const stars = (text: string): string => text.replace(/[^\s"']/g, "*");

const COLOUR = { error: "red", warning: "yellow", note: "cyan" } as const;

export interface Printing {
  readonly colour?: boolean;
  /** Files are named relative to this folder. */
  readonly from?: string;
}

/** For a terminal. Empty when there is nothing to say. */
export function printProblems(
  problems: readonly Located[],
  { colour = false, from }: Printing = {},
): string {
  if (problems.length === 0) return "";
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const blocks = problems.map((p) => {
    const file = from === undefined ? p.file : nearer(from, p.file);
    const place = p.line === 0 ? file : `${file}:${p.line}:${p.column}`;
    const path = p.path === "" ? "" : `${p.path}: `;
    const hint = p.hint === undefined ? "" : ` — ${p.hint}`;
    const head = `${paint("bold", place)}  ${paint(COLOUR[p.severity], p.severity)}  ${path}${p.message}${hint}  ${paint("dim", `[${p.id}]`)}`;
    return p.frame === undefined ? head : `${head}\n${paint("dim", p.frame)}`;
  });
  return `${blocks.join("\n\n")}\n\n${count(problems)}\n`;
}

function nearer(from: string, file: string): string {
  const path = relative(from, file);
  return path === "" || path.startsWith("..") ? file : path;
}

/** For machines: `check --json`. */
export const problemsJson = (problems: readonly Located[]): string =>
  `${JSON.stringify({ ok: !problems.some((p) => p.severity === "error"), problems }, null, 2)}\n`;
