// Templates of `tollgate new` are plugins: they keep the contract unchanged, and their pages match
// their schemas.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import {
  conformanceChecks,
  protocolChecks,
  storeChecks,
  createStoreFactory,
} from "tollgate/testing";
import { updateOptionTable } from "../../src/cli/check-plugin/check-package.ts";
import {
  TEMPLATE_VARIANTS,
  TEMPLATE_KINDS,
  templateFolder,
} from "../../src/cli/commands/plugins/new.ts";
import { protocol } from "../../templates/protocol/src/index.ts";

const FOLDER = join(import.meta.dirname, "../../templates");
const names = TEMPLATE_KINDS.flatMap((sort) =>
  (TEMPLATE_VARIANTS[sort] ?? [undefined]).map((like) => templateFolder(sort, like)),
);

it("one exists for each kind and form, and no other", () => {
  expect(readdirSync(FOLDER).sort()).toEqual([...names, "common"].sort());
});

describe.each(names)("%s", async (name) => {
  const at = (path: string) => join(FOLDER, name, path);
  const { tollgate } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  const entries = name === "protocol" ? ["./frontend", "./provider"] : ["./index"];
  const plugins: [string, Definition][] = [];
  for (const entry of entries) {
    const { default: definition } = (await import(at(`src/${entry}.ts`))) as {
      default: Definition;
    };
    plugins.push([entry, definition]);
  }
  const recordings = tollgate.recordings && { recordings: at(tollgate.recordings) };
  for (const [entry, definition] of plugins)
    for (const { name: law, run } of conformanceChecks(definition, {
      ...tollgate,
      ...tollgate.plugins?.[entry],
      ...recordings,
    }))
      it(law, run);
  if (name === "protocol")
    for (const { name: law, run } of protocolChecks(protocol(), recordings)) it(law, run);
  if (name === "store")
    for (const { name: law, run } of storeChecks(createStoreFactory(plugins[0]![1], tollgate.with)))
      it(law, run);

  it("has a page with the table of its options", () => {
    const page = readFileSync(at("README.md"), "utf8");
    const fresh = updateOptionTable(
      page,
      plugins.map(([, definition]) => definition),
    );
    if (process.env["UPDATE_README"] === "1") writeFileSync(at("README.md"), fresh!);
    expect(readFileSync(at("README.md"), "utf8")).toBe(fresh);
  });

  it("has a config to try it, and a test in addition to the checks", () => {
    expect(existsSync(at("gateway.yaml"))).toBe(true);
    expect(readdirSync(at("test")).filter((file) => file.endsWith(".test.ts")).length).toBe(2);
  });
});
