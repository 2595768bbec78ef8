// The planted defects of `npm run mutants` are real: each changes the program's behavior, and
// nothing else.
import { expect, it } from "vitest";
import { mutated, mutationsIn } from "./mutations.ts";

const all = (source: string) => mutationsIn(source).map((one) => mutated(source, one));

it("negates conditions and swaps operators", () => {
  expect(all("if (a < b) f(c);")).toEqual([
    "if (!(a < b)) f(c);",
    "if (a <= b) f(c);",
    "if (a < b) ;",
  ]);
  expect(all("const x = a && b - c;")).toEqual(["const x = a || b - c;", "const x = a && b + c;"]);
});

it("replaces constants, and removes statements that nothing awaits", () => {
  expect(all("x = 1;")).toEqual([";", "x = 2;"]);
  expect(all("await f(true);")).toEqual(["await f(false);"]);
  expect(all("void run();")).toEqual([";"]);
});

it("returns early", () => {
  expect(all("function f() { throw x; }")).toEqual(["function f() { return; throw x; }"]);
  expect(all("const f = () => x;")).toEqual([]);
});

it("leaves types, imports, names, comments, and concatenated strings unchanged", () => {
  for (const source of [
    "type A = 1 | true;",
    "interface A { a: 0 }",
    'import a from "a";',
    'export { a } from "a";',
    "// 1 < 2",
    'const a = "b" + c;',
    "const a = { 1: b };",
  ])
    expect(all(source), source).toEqual([]);
  expect(all("const a = b as 1;")).toEqual([]);
});
