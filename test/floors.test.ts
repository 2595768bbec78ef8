// The layout as a test: every import points down, plugins use what third parties get, files are small and named for
// what they are.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path/posix";
import { describe, expect, it } from "vitest";
import { FLOORS, foreign, importsOf, packageOf, upward } from "./floors.ts";

const root = new URL("..", import.meta.url).pathname;
const tree = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
    .map((path) => join(folder, path))
    .sort();
const read = (path: string) => readFileSync(join(root, path), "utf8");
const src = tree("src");
const plugins = tree("plugins").filter((path) => path !== "plugins/index.ts");
const manifest = JSON.parse(read("package.json"));

/** Longer than 300 lines, each with its reason. */
const LONG: { readonly [file: string]: string } = {
  "src/config/problems.ts": "every problem in one list, so that ids and words can be compared",
};

describe("every import points down", () => {
  it("in src", () => {
    const wrong = src.flatMap((file) =>
      importsOf(read(file)).flatMap((i) => upward(file, i) ?? []),
    );
    expect(wrong).toEqual([]);
  });

  it("in plugins, which know only what third parties get", () => {
    const wrong = plugins.flatMap((file) =>
      importsOf(read(file)).flatMap((i) => foreign(file, i, declaredAround(file)) ?? []),
    );
    expect(wrong).toEqual([]);
  });

  it("and every package that src imports is declared", () => {
    const declared = Object.keys(manifest.dependencies);
    const used = src.flatMap((file) =>
      importsOf(read(file))
        .filter(({ from }) => !from.startsWith(".") && !from.startsWith("node:"))
        .map(({ from }) => `${packageOf(from)} (${file})`),
    );
    expect(used.filter((use) => !declared.includes(use.split(" ")[0]!))).toEqual([]);
  });

  it("and codecs are pure: no I/O, no clock", () => {
    const impure = src
      .filter((file) => file.startsWith("src/protocols/"))
      .filter((file) => {
        const modules = importsOf(read(file)).filter(({ typeOnly }) => !typeOnly);
        const io = modules.some(({ from }) =>
          /^node:(?!buffer$|crypto$|string_decoder$)/.test(from),
        );
        const code = read(file).replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
        return (
          io ||
          /\bDate\.now\(|\bnew Date\(\)|Math\.random\(|randomUUID|randomBytes|\bset(Timeout|Interval)\(/.test(
            code,
          )
        );
      });
    expect(impure).toEqual([]);
  });
});

/** What the package.json files between a plugin and the root declare. */
function declaredAround(file: string): string[] {
  const found: string[] = [];
  for (
    let folder = dirname(file);
    folder !== "plugins" && folder !== ".";
    folder = dirname(folder)
  ) {
    const path = join(folder, "package.json");
    if (existsSync(join(root, path)))
      found.push(...Object.keys(JSON.parse(read(path)).dependencies ?? {}));
  }
  return found;
}

describe("files", () => {
  it("of each floor include one that says what the floor may touch", () => {
    const silent = Object.keys(FLOORS)
      .filter((floor) => floor !== "index" && src.some((file) => file.startsWith(`src/${floor}/`)))
      .filter((floor) => {
        const openings = src
          .filter((f) => f.startsWith(`src/${floor}/`))
          .map((f) => opening(read(f)));
        return !openings.some((text) => /\bmay import\b|\bimports nothing\b/i.test(text));
      });
    expect(silent).toEqual([]);
  });

  it("are named for what they hold", () => {
    const vague = /^(utils?|helpers?|manager|handler|service|base|core|common|misc|shared)\.ts$/;
    const inVagueFolder = /\/(utils?|helpers?|common|misc)\//;
    expect(
      [...src, ...plugins].filter((f) => vague.test(basename(f)) || inVagueFolder.test(f)),
    ).toEqual([]);
  });

  it("are short", () => {
    const long = [...src, ...plugins].filter(
      (f) => read(f).split("\n").length - 1 > 300 && !(f in LONG),
    );
    expect(long).toEqual([]);
    expect(
      Object.keys(LONG).filter(
        (f) => existsSync(join(root, f)) && read(f).split("\n").length <= 301,
      ),
    ).toEqual([]);
  });

  it("have no default export but plugins", () => {
    expect(src.filter((file) => /^export default/m.test(read(file)))).toEqual([]);
  });
});

/** The comment a file begins with. */
function opening(source: string): string {
  const lines = source.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines.slice(0, end < 0 ? undefined : end).join(" ");
}

describe("the judge", () => {
  const one = (file: string, source: string) =>
    importsOf(source).flatMap(
      (i) => (file.startsWith("src") ? upward(file, i) : foreign(file, i, ["pg"])) ?? [],
    );

  it.each([
    ["src/lib/a.ts", 'import { x } from "../model/error.ts";'],
    ["src/walk/a.ts", 'import { x } from "../config/read.ts";'],
    ["src/walk/a.ts", 'export { x } from "../gateway/a.ts";'],
    ["src/walk/a.ts", 'import {\n  type A,\n  b,\n} from "../config/types.ts";'],
    ["src/walk/a.ts", 'const { x } = await import("../loader/load.ts");'],
    ["src/model/a.ts", 'import "../plugin/index.ts";'],
    ["src/testing/a.ts", 'import { walk } from "../walk/walk.ts";'],
    ["src/config/a.ts", 'import { H3 } from "h3";'],
    ["src/walk/a.ts", 'import { x } from "tollgate/plugin";'],
    ["src/walk/a.ts", 'import { x } from "./b";'],
    ["plugins/providers/a.ts", 'import { x } from "../../src/lib/text.ts";'],
    ["plugins/providers/a.ts", 'import { x } from "../middleware/auth.ts";'],
    ["plugins/providers/a.ts", 'import { x } from "undici";'],
    ["plugins/providers/a.ts", 'import { x } from "tollgate/testing";'],
    ["plugins/providers/a.ts", 'import { x } from "tollgate";'],
  ])("catches %s: %s", (file, source) => expect(one(file, source)).toHaveLength(1));

  it.each([
    ["src/walk/a.ts", 'import type { A } from "../config/types.ts";'],
    ["src/walk/a.ts", 'import { type A, type B } from "../config/types.ts";'],
    ["src/walk/a.ts", '// import { x } from "../gateway/a.ts";\nimport { y } from "./b.ts";'],
    [
      "src/protocols/a/b/c.ts",
      'import { x } from "../../../model/error.ts";\nimport s from "../../../../schemas/x.json" with { type: "json" };',
    ],
    ["src/gateway/a.ts", 'import { H3 } from "h3";'],
    [
      "plugins/providers/a.ts",
      'import { x } from "tollgate/plugin";\nimport { y } from "tollgate/protocols/messages";\nimport { z } from "./b.ts";',
    ],
    ["plugins/stores/postgres/a.ts", 'import pg from "pg";\nimport { z } from "../book/b.ts";'],
  ])("allows %s: %s", (file, source) => expect(one(file, source)).toEqual([]));
});
