// Lists titles of tests that a commit had and the working tree does not, file by file. It shows
// whether a test was removed, moved, or renamed.
//
//     node test/titles.ts <commit>
//
// A title counts as moved if another file has it. Composed titles are compared by their source
// text.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";

const root = new URL("..", import.meta.url).pathname;
const commit = process.argv[2] ?? "HEAD";
const git = (...args: string[]) =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
const isTest = (path: string) => /^test\/.*\.test\.ts$/.test(path);

const before = new Map<string, Set<string>>();
for (const path of git("ls-tree", "-r", "--name-only", commit, "test").split("\n").filter(isTest))
  before.set(path, titlesIn(git("show", `${commit}:${path}`)));
const now = new Map<string, Set<string>>();
for (const path of git("ls-files", "--cached", "--others", "--exclude-standard", "test").split(
  "\n",
))
  if (isTest(path) && existsSync(join(root, path)))
    now.set(path, titlesIn(readFileSync(join(root, path), "utf8")));

const everywhere = new Set([...now.values()].flatMap((titles) => [...titles]));
const count = { kept: 0, moved: 0, gone: 0 };
for (const [path, titles] of before) {
  const here = now.get(path) ?? new Set();
  const gone = [...titles].filter((title) => !everywhere.has(title));
  count.gone += gone.length;
  for (const title of titles) if (here.has(title)) count.kept++;
  count.moved += [...titles].filter((title) => !here.has(title) && everywhere.has(title)).length;
  if (gone.length === 0) continue;
  console.log(`${path}${now.has(path) ? "" : " (no such file now)"}`);
  for (const title of gone) console.log(`    ${title}`);
}
const all = (of: Map<string, Set<string>>) =>
  [...of.values()].reduce((sum, { size }) => sum + size, 0);
console.log(
  `${all(before)} titles in ${before.size} files before, ${all(now)} in ${now.size} now: ${count.kept} kept, ${count.moved} moved, ${count.gone} gone`,
);

/** The first argument of each `it(…)` and `test(…)`, also of `it.each(…)(…)` and `it.skipIf(…)(…)`. */
function titlesIn(source: string): Set<string> {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach(visit);
    const of = node as Record<string, any>;
    if (of["type"] === "CallExpression" && isTestName(of["callee"])) {
      const [title] = of["arguments"];
      if (title && /^(Literal|TemplateLiteral|BinaryExpression|Identifier)$/.test(title.type))
        found.add(
          title.type === "Literal" ? String(title.value) : source.slice(title.start, title.end),
        );
    }
    for (const value of Object.values(of)) if (typeof value === "object") visit(value);
  };
  visit(parseAst(source, { lang: "ts" }));
  return found;
}

function isTestName(callee: any): boolean {
  if (callee.type === "Identifier") return callee.name === "it" || callee.name === "test";
  if (callee.type === "MemberExpression")
    return (
      /^(only|skip|concurrent|sequential)$/.test(callee.property.name) && isTestName(callee.object)
    );
  return callee.type === "CallExpression" && isRow(callee.callee);
}

/** `it.each` and similar functions: their result is called with the title. */
function isRow(callee: any): boolean {
  if (callee.type === "Identifier") return callee.name === "it" || callee.name === "test";
  return callee.type === "MemberExpression" && isRow(callee.object);
}
