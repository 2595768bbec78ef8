// Finds the files of a plugin: its own files, and those that they import by relative path. Files
// are read and not run, because changes must be detected before the plugin is imported again.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { hashContent } from "../lib/content-hash.ts";

/**
 * Maximum number of files per plugin. Additional files are not watched, and a change in them
 * requires a restart.
 */
const MAX_FILES = 2_000;
const MAX_IMPORTS_PER_FILE = 500;
const MAX_FILE_BYTES = 4 * 1024 * 1024;

const CODE_EXTENSIONS = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

/**
 * Matches `from "./x"`, `import "./x"`, `import("./x")`, `require("./x")`. A match in a comment
 * only adds a file.
 */
const RELATIVE_IMPORT = /\b(?:from|import|require)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]{1,1000})\1/g;

export interface ImportGraph {
  /** Absolute paths without symbolic links, the entry first. */
  readonly files: readonly string[];
  /** Returns the hash of one file's content. */
  hash(file: string): string | undefined;
  /** Returns a hash of a file and all files that it imports, directly or indirectly. */
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

/**
 * Resolves an import: as written, as TypeScript instead of JavaScript, with an omitted extension,
 * or as a directory's index.
 */
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

/** Reads a file. The import reports errors later. */
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
