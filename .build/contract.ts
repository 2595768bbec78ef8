// Extracts the plugin contract, declaration by declaration, for the reference pages and for the
// report that reviews compare. Relies on formatted sources, in which a declaration begins and ends
// at the margin.
import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";

const root = new URL("..", import.meta.url).pathname;

export interface Declaration {
  readonly name: string;
  /** Path relative to the root. */
  readonly file: string;
  /** Text of the doc comment, or "". */
  readonly doc: string;
  /** Source text including members' comments. For a function, only its signature. */
  readonly text: string;
}

export interface ContractModule {
  /** Module name: "tollgate/plugin". */
  readonly name: string;
  readonly index: string;
}

export const MODULES: readonly ContractModule[] = [
  { name: "tollgate/plugin", index: "src/plugin/index.ts" },
  { name: "tollgate/store", index: "src/store/index.ts" },
  { name: "tollgate/testing", index: "src/testing/index.ts" },
  { name: "tollgate/testing/vitest", index: "src/testing/vitest.ts" },
  { name: "tollgate/protocols/codec", index: "src/protocols/codec/index.ts" },
  { name: "tollgate/protocols/batches", index: "src/protocols/batches/index.ts" },
  { name: "tollgate/protocols/compatible", index: "src/protocols/compatible/index.ts" },
];

const read = (file: string) => readFileSync(join(root, file), "utf8");

/** Returns all exports of a module once, in the order of its index. */
export const declarationsOf = ({ index }: ContractModule): Declaration[] => exportsIn(index);

const REEXPORT = /^export (?:type )?(?:(\*)(?: as \w+)?|\{([^}]*)\}) from "([^"]+)";/gm;

/** Returns the exports of a file, including those that it re-exports. */
function exportsIn(file: string): Declaration[] {
  const found = new Map<string, Declaration>();
  for (const [, star, names, from] of read(file).matchAll(REEXPORT)) {
    const all = exportsIn(normalize(join(file, "..", from!)));
    for (const each of star === undefined ? named(all, names!) : all)
      if (!found.has(each.name)) found.set(each.name, each);
  }
  for (const each of declarationsIn(file)) if (!found.has(each.name)) found.set(each.name, each);
  return [...found.values()];
}

/** Selects the exports of a list such as `a, type B, c as d`, with their new names. */
const named = (all: readonly Declaration[], list: string): Declaration[] =>
  list.split(",").flatMap((each) => {
    const [from = "", name = from] = each
      .trim()
      .replace(/^type /, "")
      .split(" as ");
    const found = all.find((one) => one.name === from);
    const text = found?.text.replace(new RegExp(`\\b${from}\\b`), name);
    return found && text !== undefined ? [{ ...found, name, text }] : [];
  });

/**
 * A member of an interface, a type, or a class on a separate line: `a: string;`, `readonly b?:
 * Opt<`, `c?(x: X): void;`.
 */
const MEMBER = /^(?:(?:readonly|static|get|set|async) )*("[^"]+"|[\w$]+)\??(?:<[^>]*>)?[:(]/;

/**
 * Returns members of a declaration that have no doc comment on the line above, including members of
 * nested objects. Private members of a class and members of an object on one line do not count.
 */
export function membersWithoutWords({ text }: Pick<Declaration, "text">): string[] {
  const lines = text.split("\n");
  if (!/^export (?:declare )?(?:abstract )?(?:interface|type|class) /.test(lines[0]!)) return [];
  const isClass = / class /.test(lines[0]!);
  const found: string[] = [];
  let inComment = false;
  /** Open brackets, innermost last. Parameters and method bodies contain no members. */
  const open: ("{" | "(" | "body")[] = [];
  for (const [i, line] of lines.entries()) {
    const code = line.trim();
    if (inComment || /^\/\*|^\/\//.test(code)) {
      inComment = code.startsWith("//") ? false : !code.endsWith("*/");
      continue;
    }
    const member = MEMBER.exec(code);
    const variant = /^\| \{ (\w+\??: ("?\w+"?)).*\}/.exec(code);
    if (variant && !lines[i - 1]!.trimEnd().endsWith("*/")) found.push(variant[2]!);
    const counts = i > 0 && !open.includes("(") && !open.includes("body") && open.length > 0;
    if (counts && member && !lines[i - 1]!.trimEnd().endsWith("*/")) found.push(member[1]!);
    for (const [at, sign] of [...code.replace(/"[^"]*"/g, '""')].entries()) {
      // A union in brackets contains members, parameters do not.
      if (sign === "(") open.push(/^\s*(?:\||\/\*\*)/.test(lines[i + 1] ?? "") ? "{" : "(");
      else if (sign === "{")
        open.push(isClass && open.length > 0 && at === code.length - 1 ? "body" : "{");
      else if (sign === ")" || sign === "}") open.pop();
    }
  }
  return isClass ? found.filter((name) => name !== "constructor") : found;
}

const EXPORT =
  /^export (?:declare )?(?:async )?(?:abstract )?(interface|type|class|const|function|enum)\*? (\w+)/;

function declarationsIn(file: string): Declaration[] {
  const lines = read(file).split("\n");
  const found: Declaration[] = [];
  for (const [i, line] of lines.entries()) {
    const [, what, name] = EXPORT.exec(line) ?? [];
    if (name === undefined) continue;
    const text =
      what === "function" || what === "const" ? signature(lines, i) : block(lines, i).join("\n");
    found.push({ name, file, doc: docAbove(lines, i), text });
  }
  return found;
}

/** Returns the lines up to the end of the declaration, which is a line without indentation. */
function block(lines: readonly string[], from: number): string[] {
  let to = from;
  while (to < lines.length - 1 && !ends(lines, to)) to++;
  return lines.slice(from, to + 1);
}

function ends(lines: readonly string[], at: number): boolean {
  const line = lines[at]!;
  if (/^[}\])].*[;}]?$/.test(line) && !/^\S.*[{([]$/.test(line)) return true;
  const next = lines[at + 1] ?? "";
  return line.endsWith(";") && (next === "" || /^[^\s}\])]/.test(next));
}

/** Returns a function without its body, as callers see it. */
function signature(lines: readonly string[], from: number): string {
  const whole = block(lines, from).join("\n");
  // A data table is part of the contract. The body of a function is not.
  if (/^export const \w+ = [{[]/.test(whole)) return whole;
  const arrow = /^export const [^=]+=[\s\S]*?\)(?:: [\s\S]*?)? =>/.exec(whole)?.[0];
  if (arrow !== undefined) return arrow.replace(/ =>$/, ";");
  const plain = /^export (?:async )?function[\s\S]*?\)(?:: [\s\S]*?)? \{$/m.exec(whole)?.[0];
  return plain === undefined ? whole : plain.replace(/ \{$/, ";");
}

function docAbove(lines: readonly string[], at: number): string {
  if (!lines[at - 1]?.trimEnd().endsWith("*/")) return "";
  let from = at - 1;
  while (from > 0 && !lines[from]!.trimStart().startsWith("/**")) from--;
  return lines
    .slice(from, at)
    .map((line) => line.replace(/^\s*\/?\*+\/? ?/, "").replace(/ ?\*\/$/, ""))
    .join("\n")
    .trim();
}

/**
 * Returns the declarations without comments and line breaks, sorted by name: what a compiler sees.
 */
export function report(): string {
  const parts = MODULES.map((module) => {
    const all = declarationsOf(module).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return `# ${module.name}\n\n${all.map(({ text }) => bare(text)).join("\n\n")}\n`;
  });
  return parts.join("\n");
}

const bare = (text: string): string =>
  text
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/^\s*\/\/.*$/gm, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => line.trimEnd())
    .join("\n");
