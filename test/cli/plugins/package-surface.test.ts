// The checks of `tollgate check-plugin` that run no code of a plugin beyond its import, on a small
// package. `check-plugin.test.ts` runs all checks on packages that `tollgate new` creates.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { checkSurface } from "../../../src/cli/check-plugin/check-package.ts";
import { checkManifest, readManifest } from "../../../src/cli/check-plugin/manifest.ts";

const PLUGIN = `export default {
  "~tollgate": "middleware", api: 1, name: "small", summary: "Does nothing", sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: { word: { type: "string", description: "A word" } } },
  setup: () => ({}),
};`;
const README = "# small\n\n<!-- options -->\n<!-- /options -->\n";
const MANIFEST = {
  name: "tollgate-middleware-small",
  version: "1.0.0",
  type: "module",
  license: "MIT",
  exports: "./index.js",
};

function createPackage(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-surface-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const all = {
    "package.json": JSON.stringify(MANIFEST),
    "index.js": PLUGIN,
    "README.md": README,
    ...files,
  };
  for (const [name, text] of Object.entries(all)) writeFileSync(join(folder, name), text);
  return folder;
}

it("writes the table of options into the README only if it is asked to", async () => {
  const folder = createPackage();
  const readme = () => readFileSync(join(folder, "README.md"), "utf8");
  const problemOf = async (write: boolean) =>
    (await checkSurface(folder, { write, packs: false })).findings.find(({ check }) =>
      check.startsWith("readme"),
    )?.problem;
  expect(await problemOf(false)).toContain("out of date");
  expect(readme()).toBe(README);
  expect(await problemOf(true)).toBeUndefined();
  expect(readme()).toContain("`word`");
  expect(await problemOf(false)).toBeUndefined();
});

it("requires both the license in package.json and its text", () => {
  const problemOf = (license: string | undefined, files: Readonly<Record<string, string>>) => {
    const { license: _, ...rest } = MANIFEST;
    const manifest = JSON.stringify(license === undefined ? rest : { ...rest, license });
    const folder = createPackage({ "package.json": manifest, ...files });
    return checkManifest(folder, readManifest(folder)).find(
      ({ check }) => check === "manifest: license",
    )!.problem;
  };
  expect(problemOf("MIT", { LICENSE: "MIT" })).toBeUndefined();
  expect(problemOf("MIT", {})).toContain("the license is missing");
  expect(problemOf(undefined, { LICENSE: "MIT" })).toContain("the license is missing");
});
