// Collects all text that people read, wherever it is written, and checks its style.
//
//     node .build/prose.ts                        findings by rule and by area
//     node .build/prose.ts --list src/pipeline    each finding below a path
//     node .build/prose.ts --sample 240 --seed 7  a random sample of sentences, for a review by a person
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

export const ROOT = join(import.meta.dirname, "..");

export interface Sentence {
  readonly file: string;
  readonly line: number;
  readonly kind: "page" | "comment" | "text";
  readonly text: string;
}

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  readonly instead: string;
  /** Kinds of text that the rule applies to. If unset, all kinds. */
  readonly kinds?: readonly Sentence["kind"][];
}

/** Phrases that the style guide rules out, with their replacements. */
export const RULES: readonly Rule[] = [
  {
    name: "headless opener",
    pattern: /^(?:What|Those that|That which|One that|Of|Where|So long)\b(?!.*\?$)/,
    instead: "begin with the noun: the gateway, the key, the request",
  },
  {
    name: "speech verb for a machine",
    pattern:
      /\b(?:is|are|was|were) told\b|\bhears? of\b|\b(?:it|which|that) says\b|\bis asked\b|\bgoes to see\b/i,
    instead: "reports, receives, contains, calls, is notified",
  },
  {
    name: "posture verb",
    pattern: /\b(?:stands?|lies|lie|rests?) (?:in|on|at|there|beside|before|behind|for|with|by)\b/i,
    instead: "is, is in, is stored in, is configured next to",
  },
  {
    name: "un-English idiom",
    pattern:
      /\b(?:anew|for good|at once|comes? to nothing|beside|meanwhile|so long as|thrice|therein)\b/i,
    instead: "again, permanently, immediately, next to, in the meantime",
  },
  {
    name: "absent",
    pattern: /\b(?:absent|Absent)(?:[:,;]| means)/,
    instead: "Default: …, or: If unset, …",
  },
  {
    name: "no role",
    pattern: /\b(?:nobody|whoever|somebody|anybody|everybody)\b/i,
    instead: "name the role: a client, an operator, an administrator",
  },
  {
    name: "rate without per",
    pattern:
      /\b(?:requests?|tokens?|times?|calls?|seconds?|bytes?) an? (?:second|minute|hour|day|request|call)\b/i,
    instead: "per",
  },
  {
    name: "at most after a number",
    pattern:
      /\b\d[\d,.]*(?: ?(?:ms|s|MB|KB|MiB|KiB|GB|bytes|seconds|minutes|hours|days|lines|files|requests|tokens))? at most\b/i,
    instead: "up to 5 minutes, at most 5 minutes before the number",
  },
  {
    name: "British spelling",
    pattern:
      /\b(?:catalogue|licence|cancell(?:ed|ing)|behaviour|colour|favour|honour|labelled|centre|recognise|organise|summarise|normalise|serialise|initialise|optimise)\w*\b/i,
    instead: "American spelling: catalog, license, canceled, behavior, color",
  },
  {
    name: "long sentence",
    pattern: /^(?:\S+\s+){34,}\S+$/,
    instead: "one idea per sentence, 25 words",
  },
];

/** Returns the paths of files with prose. Generated pages are checked at their source. */
function proseFiles(): string[] {
  const skip =
    /node_modules|\/dist\/|^test\/|^docs\/plugins\/reference\.md$|\.git\/|^CHANGELOG\.md$|fixtures\//;
  return ["src", "plugins", "docs", "examples", "templates", "deploy", ".build", ".ci"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map(
        (path) => `${folder}/${path}`,
      ),
    )
    .concat(readdirSync(ROOT))
    .filter((path) => /\.(ts|md)$/.test(path) && !skip.test(path))
    .sort();
}

const split = (text: string): string[] =>
  text
    .replace(/\s+/g, " ")
    .split(/(?<=[.!?])\s+(?=[A-Z`"(])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => /[a-z]{2,}.*\s/.test(sentence) && sentence.split(" ").length >= 4);

function inPage(file: string, source: string): Sentence[] {
  const found: Sentence[] = [];
  let isCode = false;
  let paragraph: string[] = [];
  let start = 0;
  const end = () => {
    for (const text of split(paragraph.join(" ")))
      found.push({ file, line: start, kind: "page", text });
    paragraph = [];
  };
  source.split("\n").forEach((line, i) => {
    if (/^\s*```/.test(line)) isCode = !isCode;
    if (isCode || /^\s*(?:```|<!--|!\[|#)/.test(line) || line.trim() === "") return end();
    if (line.startsWith("|")) {
      end();
      for (const cell of line.split("|"))
        for (const text of split(cell)) found.push({ file, line: i + 1, kind: "page", text });
      return;
    }
    if (/^\s*(?:[-*]|\d+\.) /.test(line)) end();
    if (paragraph.length === 0) start = i + 1;
    paragraph.push(line.replace(/^\s*(?:[-*>]|\d+\.) /, ""));
  });
  end();
  return found;
}

function inSource(file: string, source: string): Sentence[] {
  const found: Sentence[] = [];
  let comment: string[] = [];
  let start = 0;
  const end = () => {
    for (const text of split(comment.join(" ")))
      found.push({ file, line: start, kind: "comment", text });
    comment = [];
  };
  source.split("\n").forEach((line, i) => {
    const words = /^\s*(?:\/\/|\/\*\*?|\*)(?!\/)\s?(.*?)(?:\*\/)?$/.exec(line)?.[1];
    if (words !== undefined) {
      if (comment.length === 0) start = i + 1;
      if (words.trim() === "") end();
      else if (!/^ {2,}\S|^@|[;{}]$/.test(words)) comment.push(words.trim());
      return;
    }
    end();
    for (const [, , text] of line.matchAll(/(["`])((?:(?!\1)[^\\\n]|\\.){16,})\1/g))
      if (
        /^[A-Z][a-z]|^[a-z]+ [a-z]+ /.test(text!) &&
        !/[<>{};]|=>|^\w+:\/\//.test(text!.replace(/\$\{[^}]*\}/g, "x"))
      )
        for (const sentence of split(text!))
          found.push({ file, line: i + 1, kind: "text", text: sentence });
  });
  end();
  return found;
}

/** Returns every sentence of the project. */
export const readSentences = (): Sentence[] =>
  proseFiles().flatMap((file) => {
    const source = readFileSync(join(ROOT, file), "utf8");
    return file.endsWith(".md") ? inPage(file, source) : inSource(file, source);
  });

/** Returns the names of the rules that a sentence breaks. Code between backticks is ignored. */
export const judge = ({ text, kind }: Pick<Sentence, "text" | "kind">): string[] => {
  const words = text.replace(/`[^`]*`/g, "`x`");
  return RULES.filter(
    ({ pattern, kinds }) => (!kinds || kinds.includes(kind)) && pattern.test(words),
  ).map(({ name }) => name);
};

/** Returns a random sample. The same seed returns the same sentences for the same tree. */
export function sample(sentences: readonly Sentence[], count: number, seed: number): Sentence[] {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const rest = [...sentences];
  return Array.from(
    { length: Math.min(count, rest.length) },
    () => rest.splice(Math.floor(next() * rest.length), 1)[0]!,
  );
}

const areaOf = (file: string): string =>
  file.includes("/") ? file.split("/").slice(0, 2).join("/") : "top level";

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      list: { type: "string" },
      sample: { type: "string" },
      seed: { type: "string", default: "1" },
    },
  });
  const all = readSentences();
  if (values.sample !== undefined)
    for (const [i, { file, line, text }] of sample(
      all,
      Number(values.sample),
      Number(values.seed),
    ).entries())
      console.log(`${i + 1}. ${text} (${file}:${line})`);
  else {
    const found = all.flatMap((sentence) => judge(sentence).map((rule) => ({ rule, ...sentence })));
    if (values.list !== undefined)
      for (const { rule, file, line, text } of found)
        if (file.startsWith(values.list)) console.log(`${file}:${line} ${rule}: ${text}`);
    const count = (of: (each: (typeof found)[number]) => string) =>
      Object.entries(Object.groupBy(found, of))
        .map(([name, list]) => [list!.length, name] as const)
        .sort(([a], [b]) => b - a);
    console.log(`${all.length} sentences, ${found.length} findings`);
    for (const [n, name] of [...count(({ rule }) => rule), ...count(({ file }) => areaOf(file))])
      console.log(`${String(n).padStart(6)}  ${name}`);
  }
}
