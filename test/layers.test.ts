// The layout as a test: every import points to a lower layer, plugins import only what third parties can import, and neither files nor
// folders import each other in a circle.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path/posix";
import { describe, expect, it } from "vitest";
import {
  circles,
  clockBound,
  folderCircles,
  foreign,
  importsOf,
  packageOf,
  shortWithOneImporter,
  undocumented,
  unexplained,
  upward,
  walled,
} from "./layers.ts";

const root = new URL("..", import.meta.url).pathname;
const all = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !/\/(node_modules|dist)\//.test(path))
    .sort();
const tree = (folder: string) => all(folder).filter((path) => path.endsWith(".ts"));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const src = tree("src");
const plugins = tree("plugins").filter((path) => path !== "plugins/index.ts");
const texts = new Map([...src, ...tree("plugins")].map((file) => [file, read(file)]));
const manifest = JSON.parse(read("package.json"));

describe("every import points to a lower layer", () => {
  it("in src", () => {
    const wrong = src.flatMap((file) =>
      importsOf(read(file)).flatMap((i) => upward(file, i) ?? []),
    );
    expect(wrong).toEqual([]);
  });

  it("in plugins, which import only the public API", () => {
    const wrong = plugins.flatMap((file) =>
      importsOf(read(file)).flatMap((i) => foreign(file, i, declaredAround(file)) ?? []),
    );
    expect(wrong).toEqual([]);
  });

  it("and every package that src imports is declared", () => {
    const declared = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
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

/** Dependencies declared by the package.json files between a plugin and the root. */
function declaredAround(file: string): string[] {
  const found: string[] = [];
  for (
    let folder = dirname(file);
    folder !== "plugins" && folder !== ".";
    folder = dirname(folder)
  ) {
    const path = join(folder, "package.json");
    if (!existsSync(join(root, path))) continue;
    const { dependencies, peerDependencies } = JSON.parse(read(path));
    found.push(...Object.keys({ ...dependencies, ...peerDependencies }));
  }
  return found;
}

describe("files", () => {
  it("have no circular imports", () => {
    expect(circles(texts)).toEqual([]);
  });

  it("have no circular imports between folders", () => {
    expect(folderCircles(texts)).toEqual([]);
  });

  it("are part of their importer if they are short and have only one", () => {
    expect(shortWithOneImporter(texts)).toEqual([]);
  });

  it("in folders of at most 25, data not counted", () => {
    const counts = new Map<string, number>();
    for (const folder of ["src", "plugins", "test"])
      for (const path of all(folder).filter((path) => !/^test\/fixtures\/|\.json$/.test(path)))
        counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 25)).toEqual([]);
  });

  it("open no port but by openPort, which chooses between listhen and Node", () => {
    const opening = [...texts]
      .filter(([file]) => !file.startsWith("src/testing/"))
      .filter(([, text]) => /\.listen\((?!\))|from "listhen"|import\("listhen"\)/.test(text))
      .map(([file]) => file)
      // Calls of the listener's own method, which opens its ports with openPort.
      .filter((file) => !/gateway-server|worker-process/.test(file));
    const home = "src/runtime/http";
    expect(opening).toEqual(
      ["listhen-bind", "open-port", "port-probe", "unix-socket"].map(
        (name) => `${home}/${name}.ts`,
      ),
    );
  });

  it("have no default export except in plugins", () => {
    expect(src.filter((file) => /^export default/m.test(read(file)))).toEqual([]);
  });
});

describe("the page about workers", () => {
  it("has a row for each file, and no row without a file", () => {
    const folder = "src/runtime/workers";
    const rows = read(`${folder}/README.md`).matchAll(/^\| `([\w-]+\.ts)` \|/gm);
    const files = src.filter((file) => file.startsWith(`${folder}/`)).map((file) => basename(file));
    expect([...rows].map((row) => row[1]!).sort()).toEqual(files.sort());
  });
});

describe("the top level", () => {
  it("has a reason for each entry, and no reason without an entry", () => {
    const ignored = read(".gitignore")
      .split("\n")
      .map((line) => line.replaceAll("/", ""));
    const entries = readdirSync(root).filter(
      (entry) => entry !== ".git" && !ignored.includes(entry),
    );
    const table = /## Top-level files and folders\n([\s\S]*?)\n## /.exec(
      read("src/README.md"),
    )![1]!;
    const reasons = table
      .split("\n")
      .filter((row) => row.startsWith("| `"))
      .flatMap((row) => [...row.split("|")[1]!.matchAll(/`([^`]+)`/g)].map((m) => m[1]!));
    expect(reasons.sort()).toEqual(entries.sort());
  });
});

describe("the wall clock", () => {
  it("is read in one file, and no plugin measures durations with it", () => {
    const all = [...src, ...plugins];
    expect(all.flatMap((file) => walled(file, read(file)))).toEqual([]);
  });
});

describe("doc comments", () => {
  it("state for every method of the contract when it is called", () => {
    const contract = src.filter((file) => file.startsWith("src/plugin/"));
    expect(contract.flatMap((file) => unexplained(file, read(file)))).toEqual([]);
  });

  it("exist for every export of the contract, the model, and the kit", () => {
    const spoken = src.filter((file) => /^src\/(plugin|model|store|testing)\//.test(file));
    expect(spoken.flatMap((file) => undocumented(file, read(file)))).toEqual([]);
  });
});

/** The test of this rule, and that of the clock that tests use instead. */
const SELF = ["test/layers.test.ts", "test/kit/clock.test.ts"];

describe("tests", () => {
  it("do not depend on the speed of the machine", () => {
    // The benchmark and the rigs measure, real clients and the browser are separate programs, and
    // the kit implements waiting.
    const other = /^test\/((rig|bench|clients|console|kit)\/|(run|layers)\.|.*\/mutants\.ts$)/;
    const judged = tree("test").filter(
      (file) => !SELF.includes(file) && (file.endsWith(".test.ts") || !other.test(file)),
    );
    expect(judged.flatMap((file) => clockBound(file, read(file)))).toEqual([]);
  });

  it("register hooks themselves, because a module that several files of one process use is loaded once", () => {
    const setup = /"(test\/kit\/[\w-]+\.ts)"/g;
    const isSetup = new Set(
      [...read("test/vitest.config.ts").matchAll(setup)].map(([, file]) => file),
    );
    const shared = tree("test").filter((file) => !file.endsWith(".test.ts") && !isSetup.has(file));
    const hook = /^(?:before|after)(?:Each|All)\(/m;
    expect(shared.filter((file) => hook.test(read(file)))).toEqual([]);
  });
});

describe("functions", () => {
  it("have at most 120 lines, without blank lines and comments", async () => {
    expect(await longFunctions()).toEqual([]);
  });
});

/** Counted by name, like oxlint. */
async function longFunctions(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "layers-"));
  const config = join(folder, "oxlint.json");
  const rule = ["error", { max: 120, skipBlankLines: true, skipComments: true }];
  writeFileSync(
    config,
    JSON.stringify({
      plugins: [],
      categories: { correctness: "off" },
      rules: { "max-lines-per-function": rule },
    }),
  );
  // Exits with 1 if it found something.
  const output = await new Promise<string>((resolve) =>
    execFile(
      join(root, "node_modules/.bin/oxlint"),
      ["-c", config, "-f", "json", "src", "plugins"],
      { cwd: root, maxBuffer: 1 << 26 },
      (_error, stdout) => resolve(stdout),
    ),
  );
  rmSync(folder, { recursive: true });
  const { diagnostics } = JSON.parse(output) as {
    diagnostics: { message: string; filename: string; labels: { span: { line: number } }[] }[];
  };
  return diagnostics.map(({ message, filename, labels }) => {
    const line = read(filename).split("\n")[labels[0]!.span.line - 1] ?? "";
    return (
      /`(\w+)`/.exec(message)?.[1] ?? /(\w+) =/.exec(line)?.[1] ?? `${filename}: ${line.trim()}`
    );
  });
}

describe("the check of comments, clocks, and circles", () => {
  const files = (of: { [file: string]: string }) => new Map(Object.entries(of));
  it("finds exports without a comment, and comments without an export", () => {
    expect(undocumented("a.ts", "export const x = 1;")).toHaveLength(1);
    expect(undocumented("a.ts", "/** One. */\n/** Two. */\nexport const x = 1;")).toHaveLength(1);
    expect(
      undocumented("a.ts", '/** One. */\nexport const x = 1;\nexport * from "./b.ts";'),
    ).toEqual([]);
  });
  it.each([
    "const began = performance.now();",
    "expect(performance.now() - began).toBeLessThan(100);",
    "const began = process.hrtime.bigint();",
    'performance.mark("begun");',
    'console.time("reload");',
    "expect(end).toBeLessThan(Date.now());",
    "const ms = Date.now() - began;",
    "return key.expires - Date.now();",
    'import { setTimeout as sleep } from "node:timers/promises";',
    "await new Promise((resolve) => setTimeout(resolve, 500));",
    "await Promise.race([asked, sleep(20)]);",
    "await vi.waitFor(check, 3_000);",
    'it("ends", { timeout: 10_000 }, async () => {',
    "  }, 30_000);",
    "    10_000,\n  );",
  ])("finds a dependency on the speed of the machine: %s", (line) => {
    expect(clockBound("a.test.ts", line)).toHaveLength(1);
    // No comment can disable it.
    expect(clockBound("a.test.ts", `// By the clock: an order of moments.\n${line}`)).toHaveLength(
      1,
    );
  });
  it.each([
    "await until(() => told.length === 1);",
    "await turns(20);",
    "rests.answered(call, performance.now());",
    "const inner = { started: performance.now() };",
    "const yesterday = Date.now() - 86_400_000;",
    "expect(asked).toBeLessThan(10);",
    'it("ends", { timeout: 300_000 }, async () => {',
    "vi.useFakeTimers();\nconst began = performance.now();",
  ])("and accepts an event, a fact, or the test's own time: %s", (line) => {
    expect(clockBound("a.test.ts", line)).toEqual([]);
  });
  it("finds the wall clock in other files", () => {
    for (const line of ["const at = Date.now();", "now = Date.now,", "new Date().toISOString()"]) {
      expect(walled("src/pipeline/a.ts", line)).toHaveLength(1);
      expect(walled("src/lib/time/wall-clock.ts", line)).toEqual([]);
    }
    expect(walled("plugins/a.ts", "if (Date.now() - since < 5)")).toHaveLength(1);
    expect(walled("plugins/a.ts", "const from = Date.now() - DAY_MS;")).toEqual([]);
    expect(walled("src/pipeline/a.ts", "// Not Date.now().\nnew Date(at)")).toEqual([]);
  });
  it("finds a method without a comment, and accepts one that has a comment", () => {
    const of = (line: string) => unexplained("a.ts", `export interface A {\n${line}\n}`);
    expect(of("  run?(x: X): Y;")).toHaveLength(1);
    expect(of("  list(of: {")).toHaveLength(1);
    expect(of("  /** Once. */\n  run?(x: X): Y;")).toEqual([]);
  });
  it("finds a circle, across folders and within one, through types and values", () => {
    const of = {
      "src/a/a.ts": 'import type { B } from "../b/b.ts";',
      "src/b/b.ts": 'export { c } from "./c.ts";',
      "src/b/c.ts": 'import { a } from "../a/a.ts";',
    };
    expect(circles(files(of))).toEqual([["src/a/a.ts", "src/b/b.ts", "src/b/c.ts"]]);
    expect(circles(files({ ...of, "src/b/c.ts": 'import { b } from "./b.ts";' }))).toEqual([
      ["src/b/b.ts", "src/b/c.ts"],
    ]);
    expect(circles(files({ ...of, "src/b/c.ts": 'import { b } from "./d.ts";' }))).toEqual([]);
  });
  it("finds a circle of folders, and ignores types", () => {
    const of = {
      "src/a/b/x.ts": 'import { y } from "../c/y.ts";',
      "src/a/c/y.ts": "export const y = 1;",
      "src/a/c/z.ts": 'import { x } from "../b/x.ts";',
    };
    expect(folderCircles(files(of))).toEqual(["src/a: b, c"]);
    expect(
      folderCircles(files({ ...of, "src/a/c/z.ts": 'import type { X } from "../b/x.ts";' })),
    ).toEqual([]);
    expect(
      folderCircles(files({ "src/a.ts": 'import "./a/b.ts";', "src/a/b.ts": 'import "../a.ts";' })),
    ).toEqual(["src: a, a.ts"]);
  });
  it("finds a short file with one importer", () => {
    const long = "//\n".repeat(30);
    const of = { "src/a.ts": `import "./b.ts";\n${long}`, "src/b.ts": "export const b = 1;\n" };
    expect(shortWithOneImporter(files(of))).toEqual(["src/b.ts is imported only by src/a.ts"]);
    expect(shortWithOneImporter(files({ ...of, "src/c.ts": `import "./b.ts";\n${long}` }))).toEqual(
      [],
    );
    expect(shortWithOneImporter(files({ ...of, "src/b.ts": long }))).toEqual([]);
  });
});

describe("the check", () => {
  const one = (file: string, source: string) =>
    importsOf(source).flatMap(
      (i) => (file.startsWith("src") ? upward(file, i) : foreign(file, i, ["pg"])) ?? [],
    );

  it.each([
    ["src/lib/a.ts", 'import { x } from "../model/error.ts";'],
    ["src/pipeline/a.ts", 'import { x } from "../config/read.ts";'],
    ["src/pipeline/a.ts", 'export { x } from "../runtime/a.ts";'],
    ["src/pipeline/a.ts", 'import {\n  type A,\n  b,\n} from "../config/types.ts";'],
    ["src/pipeline/a.ts", 'const { x } = await import("../loader/load.ts");'],
    ["src/model/a.ts", 'import "../plugin/index.ts";'],
    ["src/testing/a.ts", 'import { run } from "../pipeline/pipeline.ts";'],
    ["src/config/a.ts", 'import { H3 } from "h3";'],
    ["src/pipeline/a.ts", 'import { x } from "tollgate/plugin";'],
    ["src/pipeline/a.ts", 'import { x } from "./b";'],
    ["plugins/providers/a.ts", 'import { x } from "../../src/lib/text.ts";'],
    ["plugins/providers/a.ts", 'import { x } from "../middleware/auth.ts";'],
    ["plugins/providers/a.ts", 'import { x } from "undici";'],
    ["plugins/providers/a.ts", 'import { x } from "tollgate/testing";'],
    ["plugins/providers/a.ts", 'import { x } from "tollgate";'],
  ])("catches %s: %s", (file, source) => expect(one(file, source)).toHaveLength(1));

  it.each([
    ["src/pipeline/a.ts", 'import type { A } from "../config/types.ts";'],
    ["src/pipeline/a.ts", 'import { type A, type B } from "../config/types.ts";'],
    ["src/pipeline/a.ts", '// import { x } from "../runtime/a.ts";\nimport { y } from "./b.ts";'],
    [
      "src/protocols/a/b/c.ts",
      'import { x } from "../../../model/error.ts";\nimport s from "../../../../schemas/x.json" with { type: "json" };',
    ],
    ["src/runtime/a.ts", 'import { H3 } from "h3";'],
    [
      "plugins/providers/a.ts",
      'import { x } from "tollgate/plugin";\nimport { y } from "tollgate/protocols/messages";\nimport { z } from "./b.ts";',
    ],
    ["plugins/stores/postgres/a.ts", 'import pg from "pg";\nimport { z } from "../sqlite/b.ts";'],
  ])("allows %s: %s", (file, source) => expect(one(file, source)).toEqual([]));
});
