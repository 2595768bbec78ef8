// `${env:NAME}`, `${env:NAME:-default}`, `${file:path}`, `${credential:name}`; `$${` is a literal `${`. Only inside strings that YAML has
// already made leaves of, so that no value can become structure, and once: what comes out is not looked at again.
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
/** As service managers and containers name them: no way out of their folder. */
const CREDENTIAL_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** What a string says. Faults do not end it: the rest is looked at too. */
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

/** The other way: a string that stands for itself. */
export const escapeTemplate = (text: string): string => text.replaceAll("${", () => "$${");

export interface InterpolationSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** By absolute path: what was read, or why not. */
  readonly files: ReadonlyMap<string, { text: string } | { words: ProblemText }>;
}

/** Where a service manager, or a container, lays down what the service alone may read. */
const DEFAULT_CREDENTIALS_DIR = "/run/secrets";

const isFilePart = (part: TemplatePart) => part.kind === "file" || part.kind === "credential";

/** Absolute: a file's path is relative to the file it stands in. */
function filePathOf(part: TemplatePart, from: string, env: InterpolationSources["env"]): string {
  if (part.kind === "file") return resolve(dirname(from), part.path);
  const { name } = part as Extract<TemplatePart, { kind: "credential" }>;
  return join(env["CREDENTIALS_DIRECTORY"] || DEFAULT_CREDENTIALS_DIR, name);
}

/** The files that a string names, absolute. */
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

/** As in a shell, an empty variable counts as missing where there is a default. A file's last line ends are not part of it. */
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
