// Interpolates `${env:NAME}`, `${env:NAME:-default}`, `${file:path}`, and `${credential:name}`;
// `$${` is a literal `${`. Only strings that YAML has already parsed are interpolated, so that the
// text of a variable cannot add keys or lists. The result is not interpolated again.
import { dirname, join, resolve } from "node:path";
import type { ConfigFiles } from "./config-files.ts";
import { problem, type ProblemText } from "../problems.ts";

export type TemplatePart =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "env";
      readonly name: string;
      readonly fallback?: string;
      readonly raw: string;
    }
  | { readonly kind: "file"; readonly path: string; readonly raw: string }
  | { readonly kind: "credential"; readonly name: string; readonly raw: string };

export type TemplateError = { readonly words: ProblemText; readonly raw: string };

export const isTemplate = (text: string): boolean => text.includes("${");

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/**
 * Names that service managers and containers use. They cannot refer to a path outside their folder.
 */
const CREDENTIAL_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** Parses a string into text and references. Continues after an error, to report all errors. */
export function parseTemplate(text: string): {
  parts: readonly TemplatePart[];
  flaws: readonly TemplateError[];
} {
  const parts: TemplatePart[] = [];
  const flaws: TemplateError[] = [];
  let literal = "";
  let i = 0;
  const add = (part: TemplatePart) => {
    if (literal !== "") parts.push({ kind: "text", text: literal });
    literal = "";
    parts.push(part);
  };
  while (i < text.length) {
    if (text.startsWith("$${", i)) {
      literal += "${";
      i += 3;
    } else if (text.startsWith("${", i)) {
      const end = text.indexOf("}", i);
      if (end < 0) {
        flaws.push({ words: problem.unclosedReference(), raw: text.slice(i) });
        break;
      }
      const raw = text.slice(i, end + 1);
      const part = parsePart(raw);
      if ("words" in part) flaws.push({ words: part.words, raw });
      else add(part);
      i = end + 1;
    } else literal += text[i++];
  }
  if (literal !== "") parts.push({ kind: "text", text: literal });
  return { parts, flaws };
}

function parsePart(raw: string): TemplatePart | { words: ProblemText } {
  const inside = raw.slice(2, -1);
  if (inside.includes("${")) return { words: problem.nestedReference() };
  const [, kind, rest] = /^(env|file|credential):(.*)$/s.exec(inside) ?? [];
  if (kind === "file") return rest ? { kind, path: rest, raw } : { words: problem.badFilePath() };
  if (kind === "credential")
    return CREDENTIAL_NAME.test(rest!)
      ? { kind, name: rest!, raw }
      : { words: problem.badCredential(rest!) };
  if (kind === "env") {
    const [name, otherwise] = splitDefault(rest!);
    if (!VARIABLE_NAME.test(name)) return { words: problem.badVariable(name) };
    return { kind, name, raw, ...(otherwise === undefined ? {} : { fallback: otherwise }) };
  }
  const bare = splitDefault(inside)[0];
  return {
    words: VARIABLE_NAME.test(bare) ? problem.bareVariable(inside) : problem.unknownReference(raw),
  };
}

function splitDefault(text: string): [string, string | undefined] {
  const at = text.indexOf(":-");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 2)];
}

/** Escapes a string, so that it contains no references. */
export const escapeTemplate = (text: string): string => text.replaceAll("${", () => "$${");

export interface InterpolationSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of each file or why it cannot be read, by absolute path. */
  readonly files: ReadonlyMap<string, { text: string } | { words: ProblemText }>;
}

/** Folder in which a service manager or container puts files that only the service may read. */
const DEFAULT_CREDENTIALS_DIR = "/run/secrets";

const isFilePart = (part: TemplatePart) => part.kind === "file" || part.kind === "credential";

/**
 * Returns an absolute path. The path of a file is relative to the file that contains the reference.
 */
function filePathOf(part: TemplatePart, from: string, env: InterpolationSources["env"]): string {
  if (part.kind === "file") return resolve(dirname(from), part.path);
  const { name } = part as Extract<TemplatePart, { kind: "credential" }>;
  return join(env["CREDENTIALS_DIRECTORY"] || DEFAULT_CREDENTIALS_DIR, name);
}

/** Returns the absolute paths of the files that a string refers to. */
export const listTemplateFiles = (
  parts: readonly TemplatePart[],
  from: string,
  env: InterpolationSources["env"],
): string[] => parts.filter(isFilePart).map((part) => filePathOf(part, from, env));

export async function readFiles(
  paths: Iterable<string>,
  disk: ConfigFiles,
): Promise<InterpolationSources["files"]> {
  const files = [...new Set(paths)];
  return new Map(await Promise.all(files.map(async (f) => [f, await disk.read(f)] as const)));
}

/**
 * Replaces the references. As in a shell, an empty variable is treated as unset if there is a
 * default. Line ends at the end of a file are removed.
 */
export function fillTemplate(
  parts: readonly TemplatePart[],
  from: string,
  of: InterpolationSources,
): { text: string; flaws: readonly TemplateError[] } {
  const flaws: TemplateError[] = [];
  const texts = parts.map((part) => {
    if (part.kind === "text") return part.text;
    if (part.kind !== "env") {
      const read = of.files.get(filePathOf(part, from, of.env))!;
      if ("text" in read) return read.text.replace(/[\r\n]+$/, "");
      flaws.push({ words: read.words, raw: part.raw });
      return "";
    }
    const value = Object.hasOwn(of.env, part.name) ? of.env[part.name] : undefined;
    if (part.fallback !== undefined) return value || part.fallback;
    if (value === undefined) flaws.push({ words: problem.unsetVariable(part.name), raw: part.raw });
    return value ?? "";
  });
  return { text: texts.join(""), flaws };
}
