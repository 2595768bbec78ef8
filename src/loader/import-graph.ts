// The files that a plugin is made of: its own, and what they import by a relative path. Read, not run: whether a plugin has
// changed must be known before it is imported again.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { hashContent } from "../lib/content-hash.ts";

/** Of a plugin, however large: what lies beyond is not looked at, and a change there needs a restart. */
const MAX_FILES = 2_000;
const MAX_IMPORTS_PER_FILE = 500;
const MAX_FILE_BYTES = 4 * 1024 * 1024;

const CODE_EXTENSIONS = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

/** `from "./x"`, `import "./x"`, `import("./x")`, `require("./x")`. A comment may match too: one more file is looked at. */
const RELATIVE_IMPORT = /\b(?:from|import|require)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]{1,1000})\1/g;

export interface ImportGraph {
  /** Absolute, without links, the entry first. */
  readonly files: readonly string[];
  /** Of a file: of what was read of it, alone. */
  hash(file: string): string | undefined;
  /** Of a file: of its text and of the texts of all that it leads to. */
  version(file: string): string;
}

export function readImportGraph(entry: string): ImportGraph {
  const found = new Map<string, ReadSource & { leads: string[] }>();
  const first = realPathOf(entry);
  const waiting = [first];
  for (const file of waiting) {
    if (found.has(file) || found.size >= MAX_FILES) continue;
    const read = readSource(file);
    const leads = CODE_EXTENSIONS.includes(extname(file)) ? importsOf(file, read.text) : [];
    found.set(file, { ...read, leads });
    waiting.push(...leads);
  }
  const versions = new Map<string, string>();
  return {
    files: [...found.keys()],
    hash: (file) => found.get(file)?.hash,
    version(file) {
      let version = versions.get(file);
      if (version === undefined)
        versions.set(file, (version = versionOf(transitiveFiles(file, found))));
      return version;
    },
  };
}

function importsOf(file: string, text: string): string[] {
  const specifiers = new Set<string>();
  for (const [, , specifier] of text.matchAll(RELATIVE_IMPORT))
    if (specifiers.add(specifier!).size >= MAX_IMPORTS_PER_FILE) break;
  const leads = [...specifiers].flatMap((each) => resolveFile(resolve(dirname(file), each)) ?? []);
  return [...new Set(leads)];
}

/** As written; with an ending that was left out; the TypeScript beside a name that says JavaScript; a folder's index. */
function resolveFile(path: string): string | undefined {
  const typed = path.replace(/\.([mc]?)js$/, ".$1ts");
  const tries = [
    path,
    typed,
    ...CODE_EXTENSIONS.map((end) => path + end),
    ...CODE_EXTENSIONS.map((end) => `${path}/index${end}`),
  ];
  const there = tries.find((each) => statSync(each, { throwIfNoEntry: false })?.isFile());
  return there === undefined ? undefined : realPathOf(there);
}

function transitiveFiles(
  from: string,
  all: ReadonlyMap<string, { text: string; leads: string[] }>,
) {
  const visited = new Set([from]);
  for (const file of visited) for (const lead of all.get(file)?.leads ?? []) visited.add(lead);
  return [...visited].sort().map((file): [string, string] => [file, all.get(file)?.text ?? ""]);
}

const versionOf = (files: readonly (readonly [file: string, text: string])[]): string =>
  createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);

interface ReadSource {
  readonly text: string;
  readonly hash: string | undefined;
}

/** What cannot be read is told by the import. */
function readSource(file: string): ReadSource {
  try {
    const { size } = statSync(file);
    if (size > MAX_FILE_BYTES) return { text: String(size), hash: undefined };
    const bytes = readFileSync(file);
    return { text: bytes.toString("utf8"), hash: hashContent(bytes) };
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    return { text: code, hash: code };
  }
}

function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
