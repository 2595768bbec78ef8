// Collects the messages of the log with their levels and fields from the source.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

export interface LoggedMessage {
  /** Levels, the highest first: "error", or "error, warn" if it depends on the case. */
  readonly level: string;
  readonly message: string;
  readonly fields: readonly string[];
}

const LEVELS: readonly string[] = ["error", "warn", "info", "debug"];
const CALL = /\blog\??\.(error|warn|info|debug)\(/g;
const TEXT = /"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;

/** Returns the arguments of a call whose opening bracket ends at `from`. */
function argumentsAt(text: string, from: number): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = from;
  for (let i = from; i < text.length; i++) {
    const sign = text[i]!;
    if (sign === '"' || sign === "`") {
      for (i++; i < text.length && text[i] !== sign; i++) if (text[i] === "\\") i++;
      continue;
    }
    if ("([{".includes(sign)) depth++;
    if (")]}".includes(sign)) depth--;
    if ((sign === "," && depth === 0) || depth < 0) {
      found.push(text.slice(start, i).trim());
      start = i + 1;
    }
    if (depth < 0) return found.filter(Boolean);
  }
  return found;
}

/** Returns the names of the members of an object literal. */
const fieldsIn = (literal: string): string[] =>
  literal.startsWith("{")
    ? argumentsAt(literal, 1)
        .map((each) => /^(?:\.\.\.\(?.*?\{ ?)?"?(\w+)"?/s.exec(each)?.[1] ?? "")
        .filter((name) => name !== "" && !/^(?:err|of|more)$/.test(name))
    : [];

/** Returns the texts of a message: several if a condition chooses one. */
const messagesIn = (argument: string): string[] =>
  [...argument.matchAll(TEXT)]
    .map(([, plain, template]) => plain ?? template!.replaceAll(/\$\{[^}]*\}/g, "…"))
    .filter((text) => /^[\w…].* /.test(text) || /^\w+$/.test(text));

/**
 * Returns the messages that the gateway logs, without the messages of the test kit and the
 * console's page.
 */
export function collectLogMessages(): LoggedMessage[] {
  const found = new Map<string, LoggedMessage>();
  for (const path of globSync("{src,plugins}/**/*.ts", { cwd: ROOT }).toSorted()) {
    if (/console\/web\/|node_modules|\/dist\/|^src\/testing\/|\.d\.ts$/.test(path)) continue;
    const text = readFileSync(join(ROOT, path), "utf8");
    for (const call of text.matchAll(CALL)) {
      const [fields = "", message] = argumentsAt(text, call.index + call[0].length);
      for (const one of messagesIn(message ?? "")) {
        const known = found.get(one);
        found.set(one, {
          level: LEVELS.filter(
            (level) => level === call[1] || known?.level.split(", ").includes(level),
          ).join(", "),
          message: one,
          fields: [...new Set([...(known?.fields ?? []), ...fieldsIn(fields)])],
        });
      }
    }
  }
  return [...found.values()];
}
