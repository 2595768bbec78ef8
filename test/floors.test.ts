// The layout as a test: every import points down, plugins use what third parties get, files are small and named for
// what they are.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path/posix";
import { describe, expect, it } from "vitest";
import {
  circles,
  FLOORS,
  foreign,
  clockBound,
  importsOf,
  packageOf,
  roleless,
  twice,
  undocumented,
  unexplained,
  upward,
  walled,
} from "./floors.ts";

const root = new URL("..", import.meta.url).pathname;
const tree = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
    .map((path) => join(folder, path))
    .sort();
const read = (path: string) => readFileSync(join(root, path), "utf8");
const src = tree("src");
const texts = new Map(src.map((file) => [file, read(file)]));
const plugins = tree("plugins").filter((path) => path !== "plugins/index.ts");
const manifest = JSON.parse(read("package.json"));

/** Longer than 300 lines, each with its reason. */
const LONG: { readonly [file: string]: string } = {
  "src/config/problems.ts": "every problem in one list, so that ids and words can be compared",
  "src/model/request.ts": "documentation of the public contract: a sentence for each member",
  "src/plugin/observer.ts": "documentation of the public contract: a sentence for each member",
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

/** What the package.json files between a plugin and the root declare. */
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

  it("do not import each other in a circle", () => {
    expect(circles(texts)).toEqual([]);
  });

  it("have no default export but plugins", () => {
    expect(src.filter((file) => /^export default/m.test(read(file)))).toEqual([]);
  });
});

describe("the page on workers", () => {
  it("has a row for each file, and none for what is not there", () => {
    const folder = "src/runtime/workers";
    const rows = read(`${folder}/README.md`).matchAll(/^\| `([\w-]+\.ts)` \|/gm);
    const files = src.filter((file) => file.startsWith(`${folder}/`)).map((file) => basename(file));
    expect([...rows].map((row) => row[1]!).sort()).toEqual(files.sort());
  });
});

describe("the top level", () => {
  it("has a reason for each entry, and none for what is not there", () => {
    const ignored = read(".gitignore")
      .split("\n")
      .map((line) => line.replaceAll("/", ""));
    const entries = readdirSync(root).filter(
      (entry) => entry !== ".git" && !ignored.includes(entry),
    );
    const table = /## The top level, and why\n([\s\S]*?)\n## /.exec(read("src/README.md"))![1]!;
    const reasons = table
      .split("\n")
      .filter((row) => row.startsWith("| `"))
      .flatMap((row) => [...row.split("|")[1]!.matchAll(/`([^`]+)`/g)].map((m) => m[1]!));
    expect(reasons.sort()).toEqual(entries.sort());
  });
});

describe("the wall clock", () => {
  it("is read in one file, and no plugin measures a span by it", () => {
    const all = [...src, ...plugins];
    expect(all.flatMap((file) => walled(file, read(file)))).toEqual([]);
  });
});

describe("words", () => {
  it("an exported type's name stands once", () => expect(twice(texts)).toEqual([]));

  it("every method of the contract says when it is called", () => {
    const contract = src.filter((file) => file.startsWith("src/plugin/"));
    expect(contract.flatMap((file) => unexplained(file, read(file)))).toEqual([]);
  });

  it("every export of the contract, of the vocabulary and of the kit has a doc comment", () => {
    const spoken = src.filter((file) => /^src\/(plugin|model|store|testing)\//.test(file));
    expect(spoken.flatMap((file) => undocumented(file, read(file)))).toEqual([]);
  });
});

/** The test of this rule, and that of the clock that tests use instead. */
const SELF = ["test/floors.test.ts", "test/kit/clock.test.ts"];

describe("tests", () => {
  it("do not depend on the speed of the machine", () => {
    // The bench and the rigs measure, real clients and the browser are programs of their own, and the kit is where the waiting is done.
    const other = /^test\/((rig|bench|clients|console|kit)\/|(run|floors)\.|.*\/mutants\.ts$)/;
    const judged = tree("test").filter(
      (file) => !SELF.includes(file) && (file.endsWith(".test.ts") || !other.test(file)),
    );
    expect(judged.flatMap((file) => clockBound(file, read(file)))).toEqual([]);
  });
});

describe("words that name no role", () => {
  it("stand in no comment", () => {
    const tests = tree("test").filter((file) => file !== "test/floors.test.ts");
    const all = [...src, ...plugins, ...tests, ...tree(".build"), ...tree(".ci")];
    expect(all.flatMap((file) => roleless(file, read(file)))).toEqual([]);
  });

  it("stand on no page", () => {
    const folders = ["docs", "examples", "plugins", "src"];
    const pages = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".md") && !path.includes("node_modules"))
        .map((path) => join(folder, path)),
    );
    const top = readdirSync(root).filter((path) => path.endsWith(".md"));
    const vague = /\b(?:nobody|whoever|somebody|anybody|everybody)\b/i;
    expect(pages.length).toBeGreaterThan(10);
    expect([...top, ...pages].filter((file) => vague.test(read(file)))).toEqual([]);
  });
});

describe("functions", () => {
  it("have at most 80 lines, blank ones and comments not counted", async () => {
    expect(await longFunctions()).toEqual([]);
  });
});

/** As oxlint counts them, by name. */
async function longFunctions(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "floors-"));
  const config = join(folder, "oxlint.json");
  const rule = ["error", { max: 80, skipBlankLines: true, skipComments: true }];
  writeFileSync(
    config,
    JSON.stringify({
      plugins: [],
      categories: { correctness: "off" },
      rules: { "max-lines-per-function": rule },
    }),
  );
  // It ends with 1 where it found something.
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

/** The comment a file begins with. */
function opening(source: string): string {
  const lines = source.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines.slice(0, end < 0 ? undefined : end).join(" ");
}

describe("the judge of words and circles", () => {
  const files = (of: { [file: string]: string }) => new Map(Object.entries(of));
  it("finds a name that stands twice, and not one that is exported once", () => {
    const of = {
      "src/a.ts": "export interface X {}",
      "src/b.ts": "export type X = 1;\ntype Y = 2;",
    };
    expect(twice(files({ ...of, "src/c.ts": "export type Y = 3;" }))).toEqual([
      "X: src/a.ts, src/b.ts",
    ]);
  });
  it("finds exports without a word, and words for nothing", () => {
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
  ])("finds what depends on the speed of the machine: %s", (line) => {
    expect(clockBound("a.test.ts", line)).toHaveLength(1);
    // No comment excuses it.
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
  ])("and not what is an event, a fact or the test's own time: %s", (line) => {
    expect(clockBound("a.test.ts", line)).toEqual([]);
  });
  it("finds the wall clock where it is no business of a file", () => {
    for (const line of ["const at = Date.now();", "now = Date.now,", "new Date().toISOString()"]) {
      expect(walled("src/walk/a.ts", line)).toHaveLength(1);
      expect(walled("src/lib/time/wall-clock.ts", line)).toEqual([]);
    }
    expect(walled("plugins/a.ts", "if (Date.now() - since < 5)")).toHaveLength(1);
    expect(walled("plugins/a.ts", "const from = Date.now() - DAY_MS;")).toEqual([]);
    expect(walled("src/walk/a.ts", "// Not Date.now().\nnew Date(at)")).toEqual([]);
  });
  it("finds a method without a word, and not one that has its own", () => {
    const of = (line: string) => unexplained("a.ts", `export interface A {\n${line}\n}`);
    expect(of("  run?(x: X): Y;")).toHaveLength(1);
    expect(of("  list(of: {")).toHaveLength(1);
    expect(of("  /** Once. */\n  run?(x: X): Y;")).toEqual([]);
  });
  it("finds a word that names no role, and passes over code, names and roles", () => {
    const said = (line: string) => roleless("a.ts", line).length;
    for (const line of [
      "// Nobody waits.",
      " * whoever asks, and whom",
      "const x = 1; // who",
      "/** For anybody. */",
    ])
      expect(said(line), line).toBeGreaterThan(0);
    for (const line of [
      "// An author who writes JavaScript.",
      "/** `who`: the key. */",
      "const who = x.identity;",
      "// Whose it is.",
    ])
      expect(said(line), line).toBe(0);
  });
  it("finds a circle, over folders and within one, through types and through others", () => {
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
});

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
    ["plugins/stores/postgres/a.ts", 'import pg from "pg";\nimport { z } from "../sqlite/b.ts";'],
  ])("allows %s: %s", (file, source) => expect(one(file, source)).toEqual([]));
});
