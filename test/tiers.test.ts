// Each test file is in one tier, and expensive files are not in the commit run.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { affected } from "./affected.ts";
import { ALONE, CI, NIGHTLY, ON_POSTGRES, PROGRAMS, SOONER } from "./tiers.ts";

const root = new URL("..", import.meta.url).pathname;
const listed = [...CI, ...Object.keys(NIGHTLY), ...ALONE];
/** Processor seconds of each file, as `--save-costs` saved them. */
const costs = JSON.parse(readFileSync(join(root, "test/costs.json"), "utf8")) as Record<
  string,
  number
>;
const MOST_SECONDS = 20;

it("lists files that exist, each once", () => {
  expect(listed.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(listed.filter((file, i) => listed.indexOf(file) !== i)).toEqual([]);
  const subjects = Object.values(NIGHTLY).flat();
  const missing = subjects.filter(
    (path) => !existsSync(join(root, path)) && !existsSync(join(root, `${path}.ts`)),
  );
  expect(missing).toEqual([]);
});

it("lists for each nightly file tests of the other tiers that check the same laws", () => {
  const nightly = new Set([...Object.keys(NIGHTLY), ...ALONE]);
  expect(Object.keys(SOONER).toSorted()).toEqual([...nightly].toSorted());
  const filesOf = (path: string) =>
    path.endsWith(".ts") ? [path] : globSync(`${path}/**/*.test.ts`, { cwd: root });
  const isSooner = (path: string) =>
    filesOf(path).some((file) => existsSync(join(root, file)) && !nightly.has(file));
  expect(
    Object.values(SOONER)
      .flat()
      .filter((path) => !isSooner(path)),
  ).toEqual([]);
});

it("lists programs and tests on PostgreSQL that exist", () => {
  const files = [
    ...PROGRAMS.flatMap(({ args }) => args.filter((arg) => arg.endsWith(".ts"))),
    ...Object.keys(ON_POSTGRES.leftOut),
    ...ON_POSTGRES.brief,
    ...ON_POSTGRES.laws,
  ];
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

it("has workflows whose scripts and files exist", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const texts = globSync([".github/workflows/*.yaml", ".ci/*"], { cwd: root }).map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const named = (pattern: RegExp) =>
    texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name!));
  const commands = named(/npm run (?:--silent )?"?([\w:]+)/g);
  const files = named(
    /(?<![\w./-])((?:test|\.build|\.ci|deploy|docs)\/[\w./-]+\.(?:ts|js|md|yaml|sh))\b/g,
  );
  expect(commands.length).toBeGreaterThan(2);
  expect(files.length).toBeGreaterThan(5);
  // `.ci/run` appends the tier to `test:`.
  expect(commands.filter((name) => !(name in scripts) && !(`${name}ci` in scripts))).toEqual([]);
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

it(`has no file of more than ${MOST_SECONDS} s of processor time in the commit run`, () => {
  const dear = Object.entries(costs).filter(
    ([file, seconds]) => seconds > MOST_SECONDS && !listed.includes(file),
  );
  expect(dear).toEqual([]);
});

describe("a change selects the nightly files that concern it", () => {
  it("of a store: the fleet tests, not the plugin kit", () => {
    const chosen = affected(["plugins/stores/postgres/store.ts"]);
    expect(chosen).toContain("test/rig/fleet/fleet.test.ts");
    expect(chosen).not.toContain("test/rig/authoring/plugin-author.test.ts");
  });
  it("of a file that everything imports: most files", () => {
    expect(affected(["src/model/error.ts"]).length).toBeGreaterThan(
      Object.keys(NIGHTLY).length / 2,
    );
  });
  it("of a page: none", () => expect(affected(["docs/guides/configure.md"])).toEqual([]));
  it("of a test file: itself", () => {
    expect(affected(["test/rig/routing/retry-storm.test.ts"])).toEqual([
      "test/rig/routing/retry-storm.test.ts",
    ]);
  });
});
