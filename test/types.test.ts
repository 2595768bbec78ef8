// The contract's types as third parties use them: a folder of its own with `tollgate` installed,
// and any compiler options.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  typeCheckPackage,
  createPackage,
  removeFolder,
} from "./kit/process/third-party-package.ts";
import { everyNth } from "./kit/law-effort.ts";

let folder: string;
beforeAll(() => {
  folder = createPackage("types", "tollgate-provider-x");
  // The kit includes the whole program, which authors get as declarations. In this repository,
  // `tsc -p .` checks its types.
  rmSync(join(folder, "src/kit.ts"));
});
afterAll(() => removeFolder(folder));

describe("the contract compiles for a third party", () => {
  const OPTIONS: readonly (readonly [string, object])[] = [
    ["with every strictness", { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }],
    ["without exactOptionalPropertyTypes", { noUncheckedIndexedAccess: true }],
    ["with neither", {}],
    ["without noUncheckedIndexedAccess", { exactOptionalPropertyTypes: true }],
    ["with a bundler's resolution", { module: "esnext", moduleResolution: "bundler" }],
    ["with declarations", { declaration: true, exactOptionalPropertyTypes: true }],
  ];
  it.each(everyNth(3, OPTIONS, 0))("%s", async (_name, options) =>
    expect(await typeCheckPackage(folder, options)).toEqual([]),
  );

  it("control: an invalid example that compiles is an error", async () => {
    const file = join(folder, "src/hooks.ts");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace('fail("teapot", "No.")', 'fail("quota", "No.")'));
    const problems = await typeCheckPackage(folder, {});
    writeFileSync(file, text);
    expect(problems.join()).toMatch(
      /hooks\.ts\(\d+,\d+\): error TS2578: Unused '@ts-expect-error'/,
    );
  });
});
