// The folders in examples/packages are publishable: small, based on the contract only, with a page
// that matches their schema.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import { updateOptionTable } from "../../src/cli/check-plugin/check-package.ts";
import { foreign, importsOf } from "../layers.ts";

const FOLDER = join(import.meta.dirname, "../../examples/packages");
const names = readdirSync(FOLDER).filter((one) => existsSync(join(FOLDER, one, "package.json")));

describe.each(names)("%s", async (name) => {
  const at = (path: string) => join(FOLDER, name, path);
  const source = readFileSync(at("src/index.ts"), "utf8");
  const { default: definition } = (await import(at("src/index.ts"))) as { default: Definition };

  it("is one short file, and one more for a protocol, and imports only the public API", () => {
    const [index, ...more] = readdirSync(at("src"));
    expect([index, ...more.filter((file) => file !== "protocol.ts")]).toEqual(["index.ts"]);
    expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(180);
    for (const file of more) {
      const protocol = readFileSync(at(`src/${file}`), "utf8");
      expect(protocol.trimEnd().split("\n").length).toBeLessThanOrEqual(360);
      for (const one of importsOf(protocol))
        expect(foreign(`plugins/examples/${name}/src`, one, [])).toBeUndefined();
    }
    for (const one of importsOf(source).filter(({ from }) => from !== "./protocol.ts"))
      expect(foreign(`plugins/examples/${name}`, one, [])).toBeUndefined();
  });

  it("has a page with the table of its options, and is in the list", () => {
    const page = readFileSync(at("README.md"), "utf8");
    const fresh = updateOptionTable(page, [definition]);
    if (process.env["UPDATE_README"] === "1") writeFileSync(at("README.md"), fresh!);
    expect(readFileSync(at("README.md"), "utf8")).toBe(fresh);
    expect(readFileSync(join(FOLDER, "README.md"), "utf8")).toContain(`(${name}/README.md)`);
  });

  it("passes its author's test", () => {
    const [test] = readdirSync(at("test"));
    const played = readFileSync(join(import.meta.dirname, test!), "utf8");
    expect(played).toContain(`examples/packages/${name}/test/${test}`);
  });
});
