// Formats problems for people and programs: in file order, with line, column, and an excerpt of the
// file. Secrets in an excerpt are masked, because logs have more readers than files.
import { relative } from "node:path";
import { styleText } from "node:util";
import { codeFrame } from "../lib/text.ts";
import { summarizeProblems } from "./problems.ts";
import type { ConfigFinding } from "./source/config-source.ts";
import type { SourceFile, SourceSpan } from "./source/source-span.ts";
import { toDisplayPath } from "./source/config-tree.ts";
import type { LocatedProblem } from "./gateway-config.ts";

export interface LocateOptions {
  readonly root: unknown;
  /** In the order in which they were read. */
  readonly files: readonly string[];
  /** Spans of literal secrets. */
  readonly secretSpans: readonly SourceSpan[];
}

export function locateFindings(
  findings: readonly ConfigFinding[],
  of: LocateOptions,
): readonly LocatedProblem[] {
  const shown = new Map<SourceFile, readonly string[]>();
  const all = findings.map(({ words, file, pointer, span }): LocatedProblem => {
    const path = toDisplayPath(of.root, pointer);
    if (!span) return Object.freeze({ ...words, file, line: 0, column: 0, path });
    const { line, col: column } = span.source.lines.linePos(span.start);
    const lines = shown.get(span.source) ?? maskSecrets(span.source, of.secretSpans).split(/\r?\n/);
    shown.set(span.source, lines);
    const frame = codeFrame(lines, { line, column, length: span.end - span.start });
    return Object.freeze({ ...words, file: span.source.file, line, column, path, frame });
  });
  const once = new Map(all.map((p) => [`${p.id} ${p.file}:${p.line}:${p.column} ${p.message}`, p]));
  return sortByFileOrder([...once.values()], of.files);
}

/**
 * Sorts problems by file and position.
 * @param files Files in the order in which they were read.
 */
export function sortByFileOrder(
  problems: readonly LocatedProblem[],
  files: readonly string[],
): readonly LocatedProblem[] {
  const order = (p: LocatedProblem) => files.indexOf(p.file);
  return Object.freeze(
    problems.toSorted((a, b) => order(a) - order(b) || a.line - b.line || a.column - b.column),
  );
}

/**
 * Keys that usually contain a secret, for files that could not be parsed far enough to find
 * secrets.
 */
const SECRET_KEY_PATTERN = String.raw`\b[\w-]*(?:key|token|secret|passw|credential)[\w-]*["']?[ \t]*:[ \t]*(?!-\})`;
const LIKELY_SECRET = new RegExp(
  `(${SECRET_KEY_PATTERN})(["']?)([^\\s"'{[&*$#|>,][^"',}#\\r\\n]*)`,
  "gi",
);
const LIKELY_SECRET_DEFAULT = new RegExp(
  String.raw`(${SECRET_KEY_PATTERN}["']?\$\{env:\w+:-)([^}\r\n]+)`,
  "gi",
);

/** Values of such keys that are no secrets: numbers, words of YAML, and public keys. */
const PUBLIC_VALUE = /^(\d+|true|false|null|ed25519:.*)\s*$/;
/** The value of `credential` with which a client sends its own credential. */
const CLIENT_CREDENTIAL = /^credential["']?[ \t]*:[ \t]*client\s*$/;

/** Returns the text with its secrets masked. The length does not change. */
function maskSecrets(source: SourceFile, hide: readonly SourceSpan[]): string {
  let text = source.text;
  for (const { source: its, start, end } of hide)
    if (its === source)
      text = text.slice(0, start) + maskLiterals(text.slice(start, end)) + text.slice(end);
  return text
    .replace(LIKELY_SECRET, (whole, key: string, open: string, value: string) =>
      PUBLIC_VALUE.test(value) || CLIENT_CREDENTIAL.test(key + value)
        ? whole
        : key + open + maskText(value),
    )
    .replace(LIKELY_SECRET_DEFAULT, (_, before: string, value: string) => before + maskText(value));
}

/** Masks all text except references. The default in a reference is masked too. */
const maskLiterals = (text: string): string =>
  text.replace(/\$\{[^}]*\}|[^$]+|\$/g, (piece) =>
    piece.startsWith("${")
      ? piece.replace(
          /(:-)(.+)\}$/s,
          (_, dash: string, value: string) => `${dash}${maskText(value)}}`,
        )
      : maskText(piece),
  );

const maskText = (text: string): string => text.replace(/[^\s"']/g, "*");

const SEVERITY_COLORS = { error: "red", warning: "yellow", note: "cyan" } as const;

export interface PrintOptions {
  readonly useColor?: boolean;
  /** File names are shown relative to this folder. */
  readonly baseDir?: string;
}

/** Formats problems for a terminal. Returns an empty string if there are none. */
export function formatProblems(
  problems: readonly LocatedProblem[],
  { useColor = false, baseDir }: PrintOptions = {},
): string {
  if (problems.length === 0) return "";
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    useColor ? styleText(style, text, { validateStream: false }) : text;
  const blocks = problems.map((p) => {
    const file = baseDir === undefined ? p.file : shorterPath(baseDir, p.file);
    const place = p.line === 0 ? file : `${file}:${p.line}:${p.column}`;
    const path = p.path === "" ? "" : `${p.path}: `;
    const hint = p.hint === undefined ? "" : ` — ${p.hint}`;
    const head = `${paint("bold", place)}  ${paint(SEVERITY_COLORS[p.severity], p.severity)}  ${path}${p.message}${hint}  ${paint("dim", `[${p.id}]`)}`;
    return p.frame === undefined ? head : `${head}\n${paint("dim", p.frame)}`;
  });
  return `${blocks.join("\n\n")}\n\n${summarizeProblems(problems)}\n`;
}

function shorterPath(from: string, file: string): string {
  const path = relative(from, file);
  return path === "" || path.startsWith("..") ? file : path;
}

/** Formats problems as JSON, for `check --json`. */
export const formatProblemsJson = (problems: readonly LocatedProblem[]): string =>
  `${JSON.stringify({ ok: !problems.some((p) => p.severity === "error"), problems }, null, 2)}\n`;
