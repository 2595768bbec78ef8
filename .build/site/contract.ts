// Generates the contract's reference from its sources: every export of tollgate/plugin with its
// comment and its declaration.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Declared {
  readonly name: string;
  readonly kind: string;
  /** The comment as Markdown. */
  readonly words: string;
  readonly code: string;
}

export interface Chapter {
  readonly title: string;
  readonly words: string;
  readonly declared: readonly Declared[];
}

const DECLARATION =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^export (?:declare )?(?:abstract )?(interface|type|const|function|class|async function) (\w+)/gm;

/** Returns one chapter per file, in the order of the index. */
export function contract(index: string): readonly Chapter[] {
  const text = readFileSync(index, "utf8");
  return [...text.matchAll(/^export (\*|(?:type )?\{[^}]*\}) from "(\.[^"]+)";/gm)].flatMap(
    ([, what, from]) => {
      const names =
        what === "*"
          ? undefined
          : new Set([...what!.matchAll(/\w+(?=\s*[,}])/g)].map(([name]) => name));
      const chapter = chapterOf(join(dirname(index), from!), names);
      return chapter.declared.length > 0 ? [chapter] : [];
    },
  );
}

function chapterOf(file: string, names: ReadonlySet<string> | undefined): Chapter {
  const text = readFileSync(file, "utf8");
  const head = /^((?:\/\/.*\n)+)/.exec(text)?.[1] ?? "";
  const found = new Map<string, Declared>();
  for (const match of text.matchAll(DECLARATION)) {
    const [whole, comment = "", kind, name] = match as unknown as [string, string, string, string];
    if ((names && !names.has(name)) || found.has(name)) continue;
    const from = match.index + whole.length - whole.slice(whole.lastIndexOf("export ")).length;
    found.set(name, {
      name,
      kind: kind.replace("async ", ""),
      words: plain(comment),
      code: declaration(text, from),
    });
  }
  const title = file.slice(file.lastIndexOf("/") + 1, -".ts".length).replaceAll("-", " ");
  return { title, words: head.replaceAll(/^\/\/ ?/gm, "").trim(), declared: [...found.values()] };
}

const plain = (comment: string): string =>
  comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();

/**
 * Returns a declaration up to the end of its statement, or only the signature of a function. In
 * formatted code a statement ends before a line that starts at the margin.
 */
function declaration(text: string, from: number): string {
  const lines = text.slice(from).split("\n");
  const end = lines.findIndex(
    (line, i) => i > 0 && /^(?:\/\*\*|\/\/|export |const |function |type |interface |$)/.test(line),
  );
  const whole = lines
    .slice(0, end < 0 ? undefined : end)
    .join("\n")
    .trimEnd();
  const isCode =
    /^export (?:async )?function|=> *(?:\{|$)/m.test(whole) &&
    !/^export (?:type|interface)/.test(whole);
  return isCode ? `${whole.split(/(?:=>| \{)\n/)[0]!.replace(/ \{$/, "")}`.trimEnd() : whole;
}
