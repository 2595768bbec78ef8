// Reads and parses one file of the config. Problems are returned as findings with their positions,
// and never thrown.
import { readFile, stat } from "node:fs/promises";
import { type Document, LineCounter, parseDocument } from "yaml";
import type { ProblemText } from "../problems.ts";
import { problem } from "../problems.ts";
import type { SourceFile, SourceSpan } from "./source-span.ts";

/**
 * A problem at a position. `pointer` is the path in the merged document. Without `span`, it applies
 * to the whole file.
 */
export interface ConfigFinding {
  readonly words: ProblemText;
  readonly file: string;
  readonly pointer: string;
  readonly span?: SourceSpan;
  /** Set if the value is missing. Other problems with the value would only repeat this problem. */
  readonly isMissingValue?: true;
}

const MAX_FILE_BYTES = 1_048_576;

/** Returns the text of a file, or why it cannot be read. */
export async function readConfigText(
  file: string,
): Promise<{ text: string } | { words: ProblemText }> {
  try {
    const found = await stat(file);
    if (!found.isFile()) return { words: problem.notAFile(file) };
    if (found.size > MAX_FILE_BYTES) return { words: problem.tooLarge(file, found.size) };
    return decodeUtf8(file, await readFile(file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const missing = code === "ENOENT" || code === "ENOTDIR";
    return { words: missing ? problem.fileMissing(file) : problem.unreadable(file, message) };
  }
}

function decodeUtf8(file: string, bytes: Buffer): { text: string } | { words: ProblemText } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { words: problem.notUtf8(file) };
  }
}

/** Parses a file. If the document is undefined, `findings` contains the problems. */
export function parseConfigSource(
  file: string,
  text: string,
): { source: SourceFile; document: Document | undefined; findings: ConfigFinding[] } {
  const source: SourceFile = { file, text, lines: new LineCounter() };
  const findings: ConfigFinding[] = [];
  const document = parseDocument(text, {
    lineCounter: source.lines,
    schema: "core",
    version: "1.2",
    merge: false,
    stringKeys: true,
    // `buildTree` reports duplicate keys, because it has both positions.
    uniqueKeys: false,
    customTags: [],
    prettyErrors: false,
  });
  // Only one problem is reported per line, because further problems mostly repeat the first.
  const lines = new Set<number>();
  for (const flaw of [...document.errors, ...document.warnings]) {
    // `buildTree` reports every tag that is not plain, and can still read the rest of the file.
    if (flaw.code === "TAG_RESOLVE_FAILED") continue;
    const [start, end] = flaw.pos;
    const { line } = source.lines.linePos(start);
    if (lines.has(line)) continue;
    lines.add(line);
    const row = text.split(/\r?\n/, line)[line - 1] ?? "";
    const spot = { source, start, end: Math.max(end, start + 1) };
    findings.push({
      words: problem.syntax(flaw.code, flaw.message, row),
      file,
      pointer: "",
      span: spot,
    });
  }
  return { source, document: findings.length === 0 ? document : undefined, findings };
}
