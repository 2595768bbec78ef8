// The files that a plugin is made of: its own, and what they import by a relative path. Read, not run: whether a plugin has
// changed must be known before it is imported again.
import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { hashOf } from "../lib/contents.ts";

/** Of a plugin, however large: what lies beyond is not looked at, and a change there needs a restart. */
const MOST_FILES = 2_000;
const MOST_IMPORTS = 500;
const LARGEST = 4 * 1024 * 1024;

const CODE = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

/** `from "./x"`, `import "./x"`, `import("./x")`, `require("./x")`. A comment may match too: one more file is looked at. */
const RELATIVE = /\b(?:from|import|require)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]{1,1000})\1/g;

export interface Graph {
  /** Absolute, without links, the entry first. */
  readonly files: readonly string[];
  /** Of a file: of what was read of it, alone. */
  hash(file: string): string | undefined;
  /** Of a file: of its text and of the texts of all that it leads to. */
  version(file: string): string;
}

export function graphOf(entry: string): Graph {
  const found = new Map<string, FileRead & { leads: string[] }>();
  const first = real(entry);
  const waiting = [first];
  for (const file of waiting) {
    if (found.has(file) || found.size >= MOST_FILES) continue;
    const read = readOf(file);
    const leads = CODE.includes(extname(file)) ? leadsOf(file, read.text) : [];
    found.set(file, { ...read, leads });
    waiting.push(...leads);
  }
  const versions = new Map<string, string>();
  return {
    files: [...found.keys()],
    hash: (file) => found.get(file)?.hash,
    version(file) {
      let version = versions.get(file);
      if (version === undefined) versions.set(file, (version = versionOf(reached(file, found))));
      return version;
    },
  };
}

function leadsOf(file: string, text: string): string[] {
  const specifiers = new Set<string>();
  for (const [, , specifier] of text.matchAll(RELATIVE))
    if (specifiers.add(specifier!).size >= MOST_IMPORTS) break;
  const leads = [...specifiers].flatMap((each) => resolved(resolve(dirname(file), each)) ?? []);
  return [...new Set(leads)];
}

/** As written; with an ending that was left out; the TypeScript beside a name that says JavaScript; a folder's index. */
function resolved(path: string): string | undefined {
  const typed = path.replace(/\.([mc]?)js$/, ".$1ts");
  const tries = [
    path,
    typed,
    ...CODE.map((end) => path + end),
    ...CODE.map((end) => `${path}/index${end}`),
  ];
  const there = tries.find((each) => statSync(each, { throwIfNoEntry: false })?.isFile());
  return there === undefined ? undefined : real(there);
}

function reached(from: string, all: ReadonlyMap<string, { text: string; leads: string[] }>) {
  const seen = new Set([from]);
  for (const file of seen) for (const lead of all.get(file)?.leads ?? []) seen.add(lead);
  return [...seen].sort().map((file): [string, string] => [file, all.get(file)?.text ?? ""]);
}

const versionOf = (files: readonly (readonly [file: string, text: string])[]): string =>
  createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);

interface FileRead {
  readonly text: string;
  readonly hash: string | undefined;
}

/** What cannot be read is told by the import. */
function readOf(file: string): FileRead {
  try {
    const { size } = statSync(file);
    if (size > LARGEST) return { text: String(size), hash: undefined };
    const bytes = readFileSync(file);
    return { text: bytes.toString("utf8"), hash: hashOf(bytes) };
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    return { text: code, hash: code };
  }
}

function real(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
