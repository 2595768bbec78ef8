// One file of the config: bytes → text → YAML document. Whatever is wrong is a finding with its place, never a throw.
import { readFile, stat } from "node:fs/promises";
import { type Document, LineCounter, parseDocument } from "yaml";
import type { ProblemText } from "../problems.ts";
import { problem } from "../problems.ts";
import type { SourceFile, SourceSpan } from "./source-span.ts";

/** Something to say about a place. `pointer` is the path in the merged document; without a spot it is the whole file. */
export interface ConfigFinding {
  readonly words: ProblemText;
  readonly file: string;
  readonly pointer: string;
  readonly span?: SourceSpan;
  /** There is no value there: any other problem with it would only repeat this one. */
  readonly isMissingValue?: true;
}

const MAX_FILE_BYTES = 1_048_576;

/** A file's text, or what keeps us from it. */
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

/** Without a document, what is wrong stands in `findings`. */
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
    // Found while planting, where both places are known.
    uniqueKeys: false,
    customTags: [],
    prettyErrors: false,
  });
  // One problem a line: those after the first mostly repeat it.
  const lines = new Set<number>();
  for (const flaw of [...document.errors, ...document.warnings]) {
    // The tree says it of every tag that is not one of the plain ones, and the rest of the file can still be read.
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
