// `tollgate new`: what it writes, where, under which names, and that it writes over nothing.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LIKES, SORTS } from "../../src/cli/new/names.ts";
import { folder } from "../kit/command-line.ts";

const tree = (path: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

it.each(SORTS.flatMap((sort) => (LIKES[sort] ?? [""]).map((like) => [sort, like] as const)))(
  "%s %s: a package under its own name, with nothing of the template's left",
  async (sort, like) => {
    await using here = await folder();
    const words = ["new", sort, "two-words", ...(like ? ["--like", like] : []), "--json"];
    const { code, out } = await here.said(words);
    expect(code).toBe(0);
    const made = JSON.parse(out) as { folder: string; files: string[]; next: string[] };
    const kind = sort === "row" ? "provider" : sort;
    expect(made.folder.endsWith(`tollgate-${kind}-two-words`)).toBe(true);
    expect(made.next).toHaveLength(3);
    expect(tree(made.folder)).toHaveLength(made.files.length);
    const due =
      "package.json tsconfig.json README.md CHANGELOG.md LICENSE .gitignore gateway.yaml src/index.ts " +
      "test/conformance.test.ts .github/workflows/ci.yml";
    for (const file of due.split(" ")) expect(made.files).toContain(file);
    const all = tree(made.folder).map((file) => readFileSync(file, "utf8"));
    expect(all.filter((text) => /acme/i.test(text))).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(made.folder, "package.json"), "utf8"));
    expect(manifest).toMatchObject({
      name: `tollgate-${kind}-two-words`,
      type: "module",
      keywords: ["tollgate", "tollgate-plugin", `tollgate-${kind}`],
      peerDependencies: { tollgate: expect.stringMatching(/^>=\d+\.\d+ <2$/) },
      publishConfig: { provenance: true },
      engines: { node: ">=24" },
    });
    expect(manifest.dependencies).toBeUndefined();
  },
);

it("writes over nothing", async () => {
  await using here = await folder();
  expect((await here.said(["new", "provider", "x", "--dir", "a"])).code).toBe(0);
  const before = tree(join(here.path, "a")).map((file) => readFileSync(file, "utf8"));
  const again = await here.said(["new", "middleware", "y", "--dir", "a"]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("a is not empty")]);
  expect(tree(join(here.path, "a")).map((file) => readFileSync(file, "utf8"))).toEqual(before);
});

it("--bare writes its sources and nothing else, which check then takes", async () => {
  await using here = await folder({
    "gateway.yaml":
      'providers:\n  beta: { use: ./beta.ts, with: { api_key: "${env:KEY:-none-set-yet}" } }\n',
  });
  expect((await here.said(["new", "row", "beta", "--bare"])).code).toBe(0);
  expect(
    tree(here.path)
      .map((file) => file.slice(here.path.length + 1))
      .sort(),
  ).toEqual(["beta.ts", "gateway.yaml"]);
  const again = await here.said(["new", "row", "beta", "--bare"]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("beta.ts is there already")]);
  const { code, out } = await here.tollgate(["check"]);
  expect([code, out]).toEqual([0, expect.stringContaining("gateway.yaml is fine: 1 provider")]);
});

it.each([
  [["new", "providr", "x"], 'There is no kind "providr". Did you mean "provider"?'],
  [["new", "provider", "Acme Inc"], '"Acme Inc" is no name'],
  [["new", "provider", "openai"], 'Tollgate has a provider "openai" of its own'],
  [["new", "provider", "x", "--like", "grpc"], "begun like openai, anthropic, native"],
  [["new", "store", "x", "--like", "guard"], "one way to begin a store"],
])("%j is refused in words", async (words, said) => {
  await using here = await folder();
  const { code, err } = await here.said(words);
  expect([code, err]).toEqual([1, expect.stringContaining(said)]);
  expect(tree(here.path)).toEqual([]);
});
