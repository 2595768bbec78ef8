// Collects all text that people read, wherever it is written: pages, command-line help, schema
// descriptions, log lines, error messages, and comments.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED } from "../reference/markdown.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** Place of a text. `text` is any other text of a source file. */
export type Place =
  | "page"
  | "heading"
  | "cell"
  | "comment"
  | "help"
  | "schema"
  | "log"
  | "error"
  | "text";

export interface Sentence {
  readonly file: string;
  readonly line: number;
  readonly place: Place;
  readonly text: string;
}

const SKIPPED =
  /node_modules|\/dist\/|^test\/|\.git\/|^CHANGELOG\.md$|fixtures\/|^\.build\/style\/|^site\//;

/** Returns the paths of files with text. Generated pages are checked at their source. */
function textFiles(): string[] {
  return ["src", "plugins", "docs", "examples", "templates", "deploy", ".build", ".ci"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map(
        (path) => `${folder}/${path}`,
      ),
    )
    .concat(readdirSync(ROOT))
    .filter((path) => /\.(ts|md)$/.test(path) && !SKIPPED.test(path))
    .sort();
}

const split = (text: string): string[] =>
  text
    .replace(/\s+/g, " ")
    .split(/(?<=[.!?])\s+(?=[A-Z`"([]|[a-z_]+: )/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => /[a-z]{2,}.*\s/.test(sentence));

function inPage(file: string, source: string): Sentence[] {
  const found: Sentence[] = [];
  let isCode = false;
  let isGenerated = false;
  let paragraph: string[] = [];
  let start = 0;
  const add = (place: Place, line: number, text: string) => {
    for (const each of split(text)) found.push({ file, line, place, text: each });
  };
  const end = () => {
    add("page", start, paragraph.join(" "));
    paragraph = [];
  };
  source.split("\n").forEach((line, i) => {
    if (/^\s*```/.test(line)) isCode = !isCode;
    if (line.startsWith("<!-- rows -->")) isGenerated = true;
    if (line.startsWith("<!-- end -->")) isGenerated = false;
    const isIndentedCode = paragraph.length === 0 && /^ {4}/.test(line);
    if (
      isCode ||
      isGenerated ||
      isIndentedCode ||
      /^\s*(?:```|<!--|!\[)/.test(line) ||
      line.trim() === ""
    )
      return end();
    if (/^#+ /.test(line)) {
      end();
      found.push({ file, line: i + 1, place: "heading", text: line.replace(/^#+ /, "") });
      return;
    }
    if (/^\s*\|/.test(line)) {
      end();
      for (const cell of line.split(/(?<!\\)\|/))
        if (/[a-z]{2,} /.test(cell))
          found.push({ file, line: i + 1, place: "cell", text: cell.trim() });
      return;
    }
    if (/^\s*(?:[-*]|\d+\.) /.test(line)) end();
    if (paragraph.length === 0) start = i + 1;
    paragraph.push(line.replace(/^\s*(?:[-*>]|\d+\.) /, ""));
  });
  end();
  return found;
}

/** Starts of calls and members that decide the place of the text behind them. */
const MARKS: readonly (readonly [Place, RegExp])[] = [
  ["log", /\blog\??\.(?:error|warn|info|debug)\(/g],
  ["error", /\b(?:fail|createFault|createError|Error|reject\w*)\(|\bmessage:/g],
  [
    "schema",
    /\b(?:description|summary)\b|\b(?:text|flag|list|section|size|duration|names?|date|closedObject|\w*Option|nonEmptyText|positiveInteger|maxCount)\(/g,
  ],
];
/** Number of characters before a text in which its mark is. */
const REACH = 240;

function placeOf(file: string, before: string): Place {
  let best: Place = file.startsWith("src/cli/") ? "help" : "text";
  let at = -1;
  for (const [place, mark] of MARKS)
    for (const { index } of before.matchAll(mark))
      if (index > at && !(place === "schema" && best === "help")) [best, at] = [place, index];
  return best;
}

/** A text in quotes, and texts that `+` adds to it. */
const TEXT = /(["`])((?:(?!\1)[^\\\n]|\\.)*)\1((?:\s*\+\s*\1(?:(?!\1)[^\\\n]|\\.)*\1)*)/g;
const COMMENT = /^\s*(?:\/\/|\/\*\*?|\*)(?!\/)\s?(.*?)(?:\*\/)?$/;

function inSource(file: string, source: string): Sentence[] {
  const found: Sentence[] = [];
  let comment: string[] = [];
  let start = 0;
  const end = () => {
    for (const text of split(comment.join(" ")))
      found.push({ file, line: start, place: "comment", text });
    comment = [];
  };
  const lines = source.split("\n");
  lines.forEach((line, i) => {
    const words = COMMENT.exec(line)?.[1];
    if (words === undefined || words.trim() === "") return end();
    if (/^\s*(?:[-*]|\d+\.) /.test(words)) end();
    if (comment.length === 0) start = i + 1;
    // Indented text and aligned columns are tables or code.
    if (!/^ {2,}\S|\S {2,}\S|^@|[{}]$/.test(words)) comment.push(words.trim());
  });
  end();
  // Comments are blanked out, so that a quote in one does not begin a text.
  const code = lines
    .map((line) => (COMMENT.test(line) ? " ".repeat(line.length) : line))
    .join("\n");
  let line = 1;
  let last = 0;
  for (const match of code.matchAll(TEXT)) {
    const [, quote, first = "", rest = ""] = match;
    line += code.slice(last, match.index).split("\n").length - 1;
    last = match.index;
    const text =
      first + rest.replaceAll(new RegExp(`${quote}?\\s*\\+\\s*${quote}|${quote}$`, "g"), "");
    if (text.length < 16 || !/^(?:[A-Z][a-z]|\d+ [a-z])|^[a-z]+,? [a-z]+ /.test(text)) continue;
    if (/[<>{}]|=>|;$|^\w+:\/\/|^SELECT /.test(text.replace(/\$\{[^}]*\}|<[\w|-]+>/g, "x")))
      continue;
    const place = placeOf(file, code.slice(Math.max(0, match.index - REACH), match.index));
    for (const each of split(text.replace(/\$\{[^}]*\}/g, "x")))
      found.push({ file, line, place, text: each });
  }
  return found;
}

/** Returns the sentences of one file. */
export const sentencesIn = (file: string, source: string): Sentence[] =>
  file.endsWith(".md") ? inPage(file, source) : inSource(file, source);

/** Returns every sentence of the project. */
export const readSentences = (): Sentence[] =>
  textFiles().flatMap((file) => {
    const source = readFileSync(join(ROOT, file), "utf8");
    return source.includes(GENERATED) && file.endsWith(".md") ? [] : sentencesIn(file, source);
  });

/** Returns a random sample. The same seed returns the same sentences for the same tree. */
export function sample(sentences: readonly Sentence[], count: number, seed: number): Sentence[] {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const rest = sentences.filter(
    ({ place, text }) => place !== "heading" && text.split(" ").length > 3,
  );
  return Array.from(
    { length: Math.min(count, rest.length) },
    () => rest.splice(Math.floor(next() * rest.length), 1)[0]!,
  );
}
