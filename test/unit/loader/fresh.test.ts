// A plugin has the current content of its files when it is loaded, whatever they contained before.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { createLoader } from "../../../src/loader/plugin-loader.ts";
import { linear } from "../../protocols/linear/growth.ts";
import { readImportGraph } from "../../../src/loader/import-graph.ts";
import * as api from "../../../src/plugin/index.ts";
import { trialCount } from "../../kit/law-effort.ts";

const root = mkdtempSync(join(tmpdir(), "tollgate-fresh-"));
afterAll(() => rmSync(root, { recursive: true }));
let folder: string;
let count = 0;
beforeEach(() => mkdirSync((folder = join(root, String(count++)))));

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const loader = () =>
  createLoader({
    builtin: { provider: {}, frontend: {}, middleware: {}, store: {} },
    hostModules: { "tollgate/plugin": api },
  });
const summary = async (load: ReturnType<typeof loader>, use: string): Promise<string> => {
  const found = await load(use, "provider", join(folder, "gateway.yaml"));
  if ("problem" in found) throw new Error(found.problem.message);
  return found.definition.summary as string;
};

/** Forms of a plugin, and whether Node or jiti imports it. */
const WAYS: readonly [
  way: string,
  end: string,
  entry: (said: string) => string,
  part: (text: string) => string,
][] = [
  [
    "ESM",
    ".mjs",
    (said) =>
      `export default { "~tollgate": "provider", api: 1, name: "p", summary: ${said}, setup() {} };`,
    (text) => text,
  ],
  [
    "TypeScript",
    ".ts",
    (said) =>
      `const summary: string = ${said}; export default { "~tollgate": "provider", api: 1, name: "p", summary, setup() {} };`,
    (text) => text,
  ],
  [
    "TypeScript that is not only types",
    ".ts",
    (said) =>
      `enum A { b = 1 } void A.b; export default { "~tollgate": "provider", api: 1, name: "p", summary: ${said}, setup() {} };`,
    (text) => text,
  ],
  [
    "what imports the contract",
    ".ts",
    (said) =>
      `import { defineProvider } from "tollgate/plugin"; export default defineProvider({ api: 1, name: "p", summary: ${said}, setup: () => ({ endpoints: [] }) });`,
    (text) => text,
  ],
  [
    "CommonJS",
    ".cjs",
    (said) =>
      `exports.__esModule = true; exports.default = { "~tollgate": "provider", api: 1, name: "p", summary: ${said}, setup() {} };`,
    (text) =>
      text
        .replace(/import \* as (\w+) from ("[^"]+");/g, "const $1 = require($2);")
        .replace(/export const (\w+) =/g, "exports.$1 ="),
  ],
];

describe.each(WAYS)("an edit of %s", (_way, end, entry, part) => {
  it("is loaded, in any of its files, and only then", async () => {
    const load = loader();
    const texts = { entry: "1", near: "1", far: "1" };
    const all = () => {
      write(`far${end}`, part(`export const far = "${texts.far}";`));
      write(
        `lib/near${end}`,
        part(`import * as f from "../far${end}"; export const near = "${texts.near}" + f.far;`),
      );
      write(
        `p${end}`,
        part(`import * as n from "./lib/near${end}";\n`) + entry(`"${texts.entry}" + n.near`),
      );
    };
    all();
    expect(await summary(load, `./p${end}`)).toBe("111");
    const kept = await load(`./p${end}`, "provider", join(folder, "gateway.yaml"));
    expect(await load(`./p${end}`, "provider", join(folder, "gateway.yaml"))).toBe(kept);
    expect(kept.files?.size).toBe(3);
    for (const [file, text, said] of [
      ["far", "2", "112"],
      ["near", "2", "122"],
      ["entry", "2", "222"],
      ["far", "1", "221"],
      ["far", "3", "223"],
    ] as const) {
      texts[file] = text;
      all();
      expect(await summary(load, `./p${end}`), `${file} ${text}`).toBe(said);
    }
  });

  it("with an error is reported with file and line, and a later edit corrects it", async () => {
    const load = loader();
    const good = part(`import * as n from "./near${end}";\n`) + entry("n.near");
    write(`near${end}`, part(`export const near = "1";`));
    write(`p${end}`, good);
    expect(await summary(load, `./p${end}`)).toBe("1");
    write(`near${end}`, part(`\n\nexport const near = = "2";`));
    const at = new RegExp(`${join(folder, `near${end}`)}:3`);
    await expect(summary(load, `./p${end}`)).rejects.toThrow(at);
    write(`near${end}`, `\nthrow new TypeError("no luck");`);
    await expect(summary(load, `./p${end}`)).rejects.toThrow(
      new RegExp(`no luck.*${join(folder, `near${end}`)}:2`),
    );
    write(`near${end}`, part(`export const near = "3";`));
    expect(await summary(load, `./p${end}`)).toBe("3");
  });
});

describe("an unchanged module", () => {
  it("stays loaded, also if several plugins share it", async () => {
    const load = loader();
    write("shared.mjs", "export const made = {};");
    const plugin = (name: string, more = "") =>
      `import { made } from "./shared.mjs";\n${more}export default { "~tollgate": "provider", api: 1, name: "${name}", summary: "", setup: () => made };`;
    write("a.mjs", plugin("a"));
    write("b.mjs", plugin("b"));
    const made = async (use: string) => {
      const found = await load(use, "provider", join(folder, "gateway.yaml"));
      return "definition" in found ? (found.definition.setup() as object) : undefined;
    };
    const first = await made("./a.mjs");
    expect(first).toBeDefined();
    expect(await made("./b.mjs")).toBe(first);
    write("a.mjs", plugin("a", "// edited\n"));
    expect(await made("./a.mjs")).toBe(first);
    write("shared.mjs", "export const made = { again: true };");
    const second = await made("./a.mjs");
    expect(second).toEqual({ again: true });
    expect(await made("./b.mjs")).toBe(second);
  });

  it("in an installed package is checked as well, but not watched", async () => {
    const load = loader();
    const place = "node_modules/tollgate-provider-p";
    write(
      `${place}/package.json`,
      '{"name":"tollgate-provider-p","version":"1.0.0","type":"module","exports":"./index.js"}',
    );
    const text = (said: string) =>
      `export default { "~tollgate": "provider", api: 1, name: "p", summary: "${said}", setup() {} };`;
    write(`${place}/index.js`, text("old"));
    const found = await load("p", "provider", join(folder, "gateway.yaml"));
    expect(found).toMatchObject({ files: new Map() });
    write(`${place}/index.js`, text("new"));
    expect(await summary(load, "p")).toBe("new");
  });
});

it("for any imports and any edit, a plugin matches the files on disk", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.nat(5), { maxLength: 3 }), { minLength: 6, maxLength: 6 }),
      fc.array(fc.tuple(fc.nat(5), fc.nat(3)), { maxLength: 6 }),
      async (leads, edits) => {
        const dir = `law${run++}`;
        const texts = leads.map(() => 0);
        // A function is called last, so that circular imports work.
        const put = (i: number) =>
          write(
            `${dir}/m${i}.mjs`,
            `${leads[i]!.map((to, n) => `import { say as s${n} } from "./m${to}.mjs";`).join("\n")}
export const say = (seen) => { if (seen.has(${i})) return; seen.set(${i}, ${texts[i]}); ${leads[i]!.map((_, n) => `s${n}(seen);`).join(" ")} };
export default { "~tollgate": "provider", api: 1, name: "p", summary: "", setup: () => say };`,
          );
        texts.forEach((_, i) => put(i));
        const load = loader();
        const check = async () => {
          for (const entry of [0, 1]) {
            const found = await load(
              `./${dir}/m${entry}.mjs`,
              "provider",
              join(folder, "gateway.yaml"),
            );
            const seen = new Map<number, number>();
            if ("definition" in found) found.definition.setup()(seen);
            const due = new Set([entry]);
            for (const i of due) for (const to of leads[i]!) due.add(to);
            expect([...seen].sort(([a], [b]) => a - b)).toEqual(
              [...due].sort((a, b) => a - b).map((i) => [i, texts[i]]),
            );
          }
        };
        await check();
        for (const [i, text] of edits) {
          texts[i] = text;
          put(i);
          await check();
        }
      },
    ),
    { numRuns: trialCount(25) },
  );
});

describe("the files of a plugin", () => {
  it("are found like its imports, in linear time, and none outside its references", () => {
    write(
      "p.ts",
      `import a from "./a.js"; export * from './b'; const c = await import("./c/"); require("./d.json");\nimport "left-pad"; import "node:fs"; import "../../../../../nowhere.ts";`,
    );
    write("a.ts", `import "./p.ts"; // a circle`);
    write("b.mts", "export {}");
    write("c/index.js", "");
    write("d.json", "{}");
    symlinkSync(join(folder, "p.ts"), join(folder, "link.ts"));
    const names = (entry: string) =>
      readImportGraph(join(folder, entry)).files.map((file) => file.slice(folder.length + 1));
    expect(names("p.ts")).toEqual(["p.ts", "a.ts", "b.mts", "c/index.js", "d.json"]);
    expect(names("link.ts")[0]).toBe("p.ts");
    const most = 100_000;
    linear((n) => {
      write(
        "hostile.mjs",
        `${Array.from({ length: n }, (_, i) => `from "./${i}" from "./`).join("")}\n${`import(`.repeat(2 * n)}`,
      );
      return () => expect(names("hostile.mjs")).toEqual(["hostile.mjs"]);
    }, most);
  });
});
