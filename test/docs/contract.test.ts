// The contract is what its pages say that it is, and what was promised of it is still there.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  bare,
  declarationsOf,
  membersWithoutWords,
  MODULES,
  reference,
  report,
  sinceIn,
} from "../../.build/contract.ts";
import { isOlderVersion } from "../../src/loader/validate-definition.ts";
import { DEPRECATED } from "../../src/plugin/deprecated.ts";

const root = join(import.meta.dirname, "../..");
const museum = join(root, "test/museum");

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
        (key) => key !== "pretend" && !new RegExp(`\\b${key}\\b`).test(text),
      );
      expect(missing, name).toEqual([]);
    }
  });
});

/** Members with the line to write instead of them. */
const deprecatedIn = (text: string): string[] =>
  Array.from(
    text.matchAll(/@deprecated ([^\n]*?) ?\*\/\s+(?:readonly )?(\w+)/g),
    ([, write, member]) => `${member}: ${write}`,
  );

/** Names of modules → names of declarations → their lines. */
function read(text: string): Map<string, Map<string, string[]>> {
  const modules = new Map<string, Map<string, string[]>>();
  for (const part of text.split(/^# /m).filter(Boolean)) {
    const [name = "", ...rest] = part.split("\n");
    const all = rest
      .join("\n")
      .split("\n\n")
      .map((each) => each.trim())
      .filter(Boolean);
    modules.set(
      name,
      new Map(
        all.map((each) => [
          /^export (?:\w+ )*?(?:interface|type|class|const|function|enum)\*? (\w+)/.exec(each)![1]!,
          each.split("\n"),
        ]),
      ),
    );
  }
  return modules;
}

/** What an older report has and a newer one has no more: of each declaration the lines of its members. */
function lost(older: string, newer: string): string[] {
  const now = read(newer);
  return [...read(older)].flatMap(([module, declarations]) =>
    [...declarations].flatMap(([name, lines]) => {
      const there = now.get(module)?.get(name);
      if (!there) return [`${module}: ${name} is gone`];
      return lines
        .filter((line) => !there.includes(line))
        .map((line) => `${module}: ${name} has no more: ${line.trim()}`);
    }),
  );
}

/** Lines that api 1 has changed since, each with the reason why no published plugin notices. */
const CHANGED: { readonly [line: string]: string } = {};

const { version: ours } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};

describe("within api 1", () => {
  const versions = readdirSync(museum);

  it("the museum has plugins of each minor version, this one too", () =>
    expect(versions).toContain(ours.split(".").slice(0, 2).join(".")));

  it("nothing of an earlier version has gone: changes are additions", () => {
    // A version's own report is put there when it is published: until then it grows.
    for (const version of versions.filter((each) =>
      isOlderVersion(each, ours.replace(/\.\d+$/, "")),
    )) {
      const older = readFileSync(join(museum, version, "api.txt"), "utf8");
      expect(lost(older, report()).filter((line) => !(line in CHANGED))).toEqual([]);
    }
  });

  it("what is to go says so in its type and when it is mounted, with the same words", () => {
    const inTypes = MODULES.slice(0, 1).flatMap((module) =>
      declarationsOf(module).flatMap(({ text }) => deprecatedIn(text)),
    );
    const told = DEPRECATED.map(({ member, replacement }) => `${member}: ${replacement}`);
    expect(inTypes.sort()).toEqual([...told].sort());
    expect(
      deprecatedIn(
        "interface A {\n  /** Where.\n   * @deprecated base: url */\n  readonly url?: string;\n  b: 1;\n}",
      ),
    ).toEqual(["url: base: url"]);
  });

  it("the page says since when each thing is there: by the reports of versions, else by the one to come", () => {
    const older = "# tollgate/plugin\n\nexport interface A {\n}\n\n# other\n\nexport type C = 1;\n";
    const newer = `# tollgate/plugin\n\nexport interface A {\n}\n\nexport declare const B: 1;\n`;
    const since = (name: string) =>
      sinceIn(
        [
          ["0.1", older],
          ["0.2", newer],
        ],
        name,
      );
    expect(["A", "B", "C", "AB"].map(since)).toEqual(["0.1", "0.2", undefined, undefined]);
  });

  it("a member that goes, or is another one, is seen", () => {
    const older = `# m\n\n${bare("export interface A {\n  /** x */\n  b: string;\n  c?: number;\n}")}\n\nexport type T = 1;\n`;
    const newer = "# m\n\nexport interface A {\n  b: number;\n  c?: number;\n  d?: string;\n}\n";
    expect(lost(older, older)).toEqual([]);
    expect(lost(older, newer)).toEqual(["m: A has no more: b: string;", "m: T is gone"]);
  });
});
