// The contract in types, as a third party meets it: a folder of its own, `tollgate` installed beside it, and whatever
// compiler options its author likes.
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = new URL("..", import.meta.url).pathname;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-types-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/tollgate"));
  // The kit brings the whole program, which an author gets as declarations: `tsc -p .` judges its types, in this repository.
  cpSync(join(root, "test/types"), join(folder, "src"), {
    recursive: true,
    filter: (path) => !path.endsWith("/kit.ts"),
  });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "tollgate-provider-x", type: "module" }),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const strict = {
  target: "es2024",
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  customConditions: ["tollgate-source"],
  types: ["node"],
  typeRoots: [join(root, "node_modules/@types")],
};

/** What the compiler says, one line a problem. */
function compile(options: object): Promise<string[]> {
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...strict, ...options }, include: ["src"] }),
  );
  return new Promise((resolve) => {
    execFile(
      join(root, "node_modules/.bin/tsc"),
      ["-p", ".", "--pretty", "false"],
      { cwd: folder },
      (_error, out) => resolve(out.split("\n").filter((line) => line.includes("error TS"))),
    );
  });
}

describe("the contract compiles for a third party", () => {
  it.each([
    ["with every strictness", { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }],
    ["without exactOptionalPropertyTypes", { noUncheckedIndexedAccess: true }],
    ["without noUncheckedIndexedAccess", { exactOptionalPropertyTypes: true }],
    ["with neither", {}],
    ["and declares itself", { declaration: true, exactOptionalPropertyTypes: true }],
    ["with a bundler's resolution", { module: "esnext", moduleResolution: "bundler" }],
  ])("%s", async (_name, options) => expect(await compile(options)).toEqual([]));

  it("and the tests can fail: a negative that compiles is an error", async () => {
    const file = join(folder, "src/hooks.ts");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace('fail("teapot", "No.")', 'fail("quota", "No.")'));
    const problems = await compile({});
    writeFileSync(file, text);
    expect(problems.join()).toMatch(
      /hooks\.ts\(\d+,\d+\): error TS2578: Unused '@ts-expect-error'/,
    );
  });
});
