// What a plain start loads. A start spends most of its time on loading code, so code that it does
// not need is imported with `import()` where it is used.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";
import { expect, test } from "vitest";
import { importsOf, packageOf } from "./layers.ts";

const ROOT = join(import.meta.dirname, "..");

/** Entry points of a start: the command, and the modules that it imports for a usual config. */
const ENTRIES = [
  "src/cli/main.ts",
  "src/cli/commands/run/serve.ts",
  "src/server/gateway-server.ts",
  "src/runtime/http/listhen-bind.ts",
  ...["auth", "zdr", "limits", "usage"].map((name) => `plugins/middleware/${name}.ts`),
  ...["chat-completions", "messages", "responses", "models"].map(
    (name) => `plugins/frontends/${name}.ts`,
  ),
  ...["openai-compatible", "anthropic-compatible"].map((name) => `plugins/providers/${name}.ts`),
  "plugins/stores/sqlite.ts",
];

/** Packages and modules of Node.js that these modules import. */
const PACKAGES =
  "node:buffer node:child_process node:crypto node:diagnostics_channel node:dns node:events " +
  "node:fs node:http node:https node:inspector node:module node:net node:os node:path " +
  "node:perf_hooks node:process node:sqlite node:stream node:timers node:tty node:url node:util " +
  "node:v8 node:worker_threads node:zlib pino undici ws yaml";

/**
 * Modules of a start with their bytes, for the message. If a start may load more, or loads less, run
 * this test with `START_MODULES=write`.
 */
const KNOWN = join(ROOT, "test/fixtures/start-modules.txt");

/** How many times the bytes of the list a start may load. */
const MAX_GROWTH = 1.02;

interface LoadedModule {
  /** Source without comments. */
  readonly bytes: number;
  /** The module that imports it first. */
  readonly by: string;
}

function loadedBy(entries: readonly string[], read: (file: string) => string) {
  const modules = new Map<string, LoadedModule>();
  const packages = new Set<string>();
  const waiting = entries.map((file) => ({ file, by: "the start" }));
  for (const { file, by } of waiting) {
    if (modules.has(file)) continue;
    const source = read(file);
    modules.set(file, { bytes: source.replace(/^\s*(\/\/|\*|\/\*).*\n/gm, "").length, by });
    for (const { from, typeOnly, isDynamic } of importsOf(source)) {
      if (typeOnly || isDynamic || from.endsWith(".json")) continue;
      if (from.startsWith("."))
        waiting.push({ file: normalize(join(dirname(file), from)), by: file });
      else if (from.startsWith("tollgate/"))
        waiting.push({ file: `src/${from.slice("tollgate/".length)}/index.ts`, by: file });
      else packages.add(packageOf(from));
    }
  }
  return { modules, packages };
}

const sum = (sizes: Iterable<number>) => [...sizes].reduce((all, each) => all + each, 0);

/** Returns the reason why a start loads too much, with the modules that are new or have grown. */
function tooMuch(
  modules: ReadonlyMap<string, LoadedModule>,
  known: ReadonlyMap<string, number>,
): string | undefined {
  const [now, before] = [sum([...modules.values()].map(({ bytes }) => bytes)), sum(known.values())];
  if (now <= before * MAX_GROWTH) return undefined;
  const grown = [...modules]
    .map(([file, { bytes, by }]) => ({ file, by, more: bytes - (known.get(file) ?? 0) }))
    .filter(({ more }) => more > 0)
    .sort((a, b) => b.more - a.more)
    .slice(0, 20)
    .map(({ file, by, more }) =>
      known.has(file) ? `${file} has grown by ${more}` : `${file}, ${more}, imported by ${by}`,
    );
  return [
    `A start loads ${now} bytes of source in place of ${before}.`,
    "Import modules that a start does not need with import() where they are used:",
    ...grown,
  ].join("\n  ");
}

const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const { modules, packages } = loadedBy(ENTRIES, read);
if (process.env["START_MODULES"] === "write")
  writeFileSync(
    KNOWN,
    [...modules]
      .map(([file, { bytes }]) => `${bytes} ${file}\n`)
      .toSorted(byPath)
      .join(""),
  );

/** Order of lines by their paths, for short differences. */
function byPath(a: string, b: string): number {
  const [x, y] = [a, b].map((line) => line.slice(line.indexOf(" ")));
  return x! < y! ? -1 : 1;
}

const known = new Map(
  readFileSync(KNOWN, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => [line.slice(line.indexOf(" ") + 1), Number.parseInt(line, 10)]),
);

test("a start loads no more source than the list, and no other package", () => {
  expect(modules.size).toBeGreaterThan(300);
  expect(tooMuch(modules, known)).toBeUndefined();
  expect([...packages].sort()).toEqual(PACKAGES.split(" "));
});

test("commands, importers, and optional protocols are not loaded", () => {
  const optional =
    /^src\/(cli\/(commands\/(?!run\/serve\.ts)|import|init|doctor|install|check-plugin)|loader|testing)|^plugins\/(observers|frontends\/(mcp\.ts|gemini|claude-gateway)|middleware\/(jwt|prompt-caches|remote-mcp))/;
  expect([...modules.keys()].filter((file) => optional.test(file))).toEqual([]);
});

test("names the module that is new", () => {
  const files: Record<string, string> = {
    "src/a.ts": 'import { b } from "./b.ts";\nimport type { C } from "./c.ts";\n',
    "src/b.ts": "// Not counted.\nexport const b = 1;\n",
    "src/c.ts": "export type C = 1;\n",
  };
  const before = loadedBy(["src/a.ts"], (file) => files[file]!);
  expect([...before.modules.keys()]).toEqual(["src/a.ts", "src/b.ts"]);
  const sizes = new Map([...before.modules].map(([file, { bytes }]) => [file, bytes]));
  expect(tooMuch(before.modules, sizes)).toBeUndefined();
  files["src/b.ts"] = `import "./new.ts";\n${files["src/b.ts"]}`;
  files["src/new.ts"] = `export const text = "${"x".repeat(100)}";\n`;
  const after = loadedBy(["src/a.ts"], (file) => files[file]!);
  const reason = tooMuch(after.modules, sizes);
  expect(reason).toContain("src/new.ts, 124, imported by src/b.ts");
  expect(reason).toContain("src/b.ts has grown by 19");
});
