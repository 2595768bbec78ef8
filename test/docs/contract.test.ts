// Each export of the contract is documented, and the report contains all of them.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { declarationsOf, membersWithoutWords, MODULES, report } from "../../.build/contract.ts";

const root = join(import.meta.dirname, "../..");

describe("the contract", () => {
  it("has a comment on each export", () => {
    const silent = MODULES.slice(0, 1).flatMap((module) =>
      declarationsOf(module).filter(({ doc }) => doc === ""),
    );
    expect(silent.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  it("has a sentence on each member of its types", () => {
    const silent = declarationsOf(MODULES[0]!).flatMap((declaration) =>
      membersWithoutWords(declaration).map((member) => `${declaration.name}.${member}`),
    );
    expect(silent).toEqual([]);
  });

  it("a member without a comment is found, also in objects and unions", () => {
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

  it("is complete: every exported name is in the report", async () => {
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
