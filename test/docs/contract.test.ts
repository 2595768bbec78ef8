// The contract is what its pages say that it is, and what was promised of it is still there.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  declarationsOf,
  membersWithoutWords,
  MODULES,
  reference,
  report,
} from "../../.build/contract.ts";

const root = join(import.meta.dirname, "../..");

function fresh(file: string, text: string): void {
  const path = join(root, file);
  if (process.env["UPDATE_README"] === "1") writeFileSync(path, text);
  expect(readFileSync(path, "utf8"), `UPDATE_README=1 writes ${file}`).toBe(text);
}

describe("the contract", () => {
  it("has a page made of its types, with a word on each of them", () => {
    const silent = MODULES.slice(0, 1).flatMap((module) =>
      declarationsOf(module).filter(({ doc }) => doc === ""),
    );
    expect(silent.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
    fresh("docs/plugins/reference.md", reference());
  });

  it("has a sentence on each member of its types", () => {
    const silent = declarationsOf(MODULES[0]!).flatMap((declaration) =>
      membersWithoutWords(declaration).map((member) => `${declaration.name}.${member}`),
    );
    expect(silent).toEqual([]);
  });

  it("a member without a sentence is found, in objects and unions too", () => {
    const text = `export type A = Readonly<{
  /** Said. */
  a: string;
  b?: Opt<{
    /** Said. */
    c: number;
    readonly d: number;
  }>;
  e(
    x: string,
    y: { z: number },
  ): void;
}> &
  (
    | Readonly<{
        type: "f";
      }>
    /** Said. */
    | { type: "g"; h: number }
    | { type: "i"; h: number }
  );`;
    expect(membersWithoutWords({ text })).toEqual(["b", "d", "e", "type", '"i"']);
    const noType = "export const A = {\n  a: 1,\n};";
    expect(membersWithoutWords({ text: noType })).toEqual([]);
    const body = `export class A {
  readonly #own = 1;
  readonly b: number;

  constructor(b: number) {
    this.b = b;
  }

  c(): void {
    label: for (;;) break label;
  }
}`;
    expect(membersWithoutWords({ text: body })).toEqual(["b", "c"]);
  });

  // A change of this file is a change for every published plugin: a review reads it line by line.
  it("is what the report says", () => fresh("docs/plugins/api.txt", report()));

  it("is found whole: every name that an index exports is in the report", async () => {
    const text = report();
    for (const { name, index } of MODULES.filter((each) => !each.name.endsWith("vitest"))) {
      const module = (await import(join(root, index))) as object;
      const missing = Object.keys(module).filter(
        (key) => key !== "fakes" && !new RegExp(`\\b${key}\\b`).test(text),
      );
      expect(missing, name).toEqual([]);
    }
  });
});
