// docs/terminology.md is the one list of terms: what it names exists, and an earlier name that it lists appears nowhere.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./pages.ts";

const PAGE = "docs/terminology.md";

interface Term {
  readonly term: string;
  readonly code: readonly string[];
  readonly output: readonly string[];
  readonly earlier: readonly string[];
}

const codeIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);

/** Reads the rows of all tables of the page. */
function readTerms(page: string): Term[] {
  return page
    .split("\n")
    .filter((line) => /^\| [^|]+ \|/.test(line) && !/^\| (Term|---)/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, term = "", , code = "", output = "", earlier = ""]) => ({
      term,
      code: codeIn(code),
      output: codeIn(output),
      earlier: codeIn(earlier),
    }));
}

/** Lines of the files that contain an earlier name. */
function findEarlierNames(
  terms: readonly Term[],
  files: Iterable<readonly [path: string, text: string]>,
): string[] {
  const names = terms.flatMap(({ earlier }) => earlier);
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const any = new RegExp(`(?<![\\w-])(?:${escaped.join("|")})(?![\\w])`);
  return [...files].flatMap(([path, text]) =>
    any.test(text)
      ? text
          .split("\n")
          .flatMap((line, i) => (any.test(line) ? [`${path}:${i + 1} ${any.exec(line)![0]}`] : []))
      : [],
  );
}

const terms = readTerms(readFileSync(join(ROOT, PAGE), "utf8"));
const tracked = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" })
  .split("\n")
  .filter((path) => /\.(ts|js|mjs|md|ya?ml|json|tpl|sh|service|toml)$/.test(path))
  .filter((path) => ![PAGE, "package-lock.json", "CHANGELOG.md"].includes(path))
  .filter((path) => existsSync(join(ROOT, path)));
const texts = new Map(tracked.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
const source = [...texts]
  .filter(([path]) => /^(src|plugins)\//.test(path))
  .map(([, text]) => text)
  .join("\n");

describe("the list of terms", () => {
  it("names code that exists", () => {
    const missing = terms
      .flatMap(({ code }) => code)
      .filter((name) =>
        name.includes("/")
          ? !existsSync(join(ROOT, name))
          : !new RegExp(`\\b(?:class|interface|type|const|function) ${name}\\b`).test(source),
      );
    expect(missing).toEqual([]);
  });

  it("names keys, commands, metrics, and headers that exist", () => {
    const missing = terms
      .flatMap(({ output }) => output)
      // The exposition adds the suffix of a counter.
      .flatMap((name) => name.replace(/^tollgate |_total$/g, "").split(/[.]/))
      .filter((name) => !source.includes(name));
    expect(missing).toEqual([]);
  });

  it("has each term once", () => {
    const names = terms.map(({ term }) => term);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    expect(names.length).toBeGreaterThan(40);
  });

  it("lists no earlier name that is still used", () => {
    expect(findEarlierNames(terms, texts)).toEqual([]);
  });
});

describe("the check for earlier names", () => {
  const old = [{ term: "spool", code: [], output: [], earlier: ["tape_share", "old lane"] }];
  it.each([
    ["code", "src/a.ts", "const tape_share = 1;"],
    ["a comment", "src/a.ts", "// The old lane is closed."],
    ["a page", "docs/a.md", "Set `tape_share` to 0.2."],
    ["help", "src/cli/a.ts", 'summary: "Show the old lane"'],
    ["a schema", "schemas/a.json", '"description": "tape_share"'],
    ["a message", "src/a.ts", 'fail("invalid", "There is an old lane.")'],
    ["a config", "deploy/gateway.yaml", "tape_share: 1"],
  ])("finds one in %s", (_, path, text) =>
    expect(findEarlierNames(old, [[path, text]])).toHaveLength(1),
  );
  it("does not match a part of a word", () =>
    expect(findEarlierNames(old, [["src/a.ts", "const landscape_shares = 1; bold lanes"]])).toEqual(
      [],
    ));
});
