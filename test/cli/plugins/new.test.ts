// `tollgate new`: the files that it writes, their names, and that it overwrites nothing.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { parseDocument } from "yaml";
import { TEMPLATE_VARIANTS, TEMPLATE_KINDS } from "../../../src/cli/commands/plugins/new.ts";
import { createTestFolder } from "../../kit/process/command-line.ts";

const tree = (path: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

it.each(
  TEMPLATE_KINDS.flatMap((sort) =>
    (TEMPLATE_VARIANTS[sort] ?? [""]).map((like) => [sort, like] as const),
  ),
)(
  "%s %s: creates a package under its own name, with no trace of the template",
  async (sort, like) => {
    await using here = await createTestFolder();
    const words = ["new", sort, "two-words", ...(like ? ["--template", like] : []), "--json"];
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

it.each([
  ["20.11.0", 1],
  ["24.0.0", 0],
  ["100.1.0", 0],
])(
  "on Node %s, the package names the Node version that it needs, or prints nothing",
  async (version, code) => {
    await using here = await createTestFolder();
    const { out } = await here.said(["new", "provider", "x", "--json"]);
    const made = JSON.parse(out) as { folder: string };
    const { scripts } = JSON.parse(readFileSync(join(made.folder, "package.json"), "utf8"));
    const faked = `Object.defineProperty(process,"versions",{value:{node:"${version}"}})`;
    const env = {
      PATH: process.env["PATH"],
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(faked)}`,
    };
    for (const script of [scripts.pretest, scripts.prebuild]) {
      const ran = spawnSync(script, { shell: true, cwd: made.folder, env, encoding: "utf8" });
      const words = `This package needs Node 24 or newer to build and test. This is Node ${version}.\n`;
      expect([ran.status, ran.stdout, ran.stderr]).toEqual([code, "", code === 0 ? "" : words]);
    }
  },
);

// Names that are keywords of JavaScript, of YAML, or of the tests around a plugin, with dashes and
// digits.
const ODD =
  "webhook-x a-1-b x2 class default in constructor prototype to-string door front back demo-2 yes no on off y " +
  "import-meta plugin test api env key acme-door " +
  "n".repeat(64);

it.each(
  TEMPLATE_KINDS.flatMap((sort) =>
    (TEMPLATE_VARIANTS[sort] ?? [""]).map((like) => [sort, like] as const),
  ),
)("%s %s: with any name, each file is valid and no name is declared twice", async (sort, like) => {
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  await using here = await createTestFolder();
  for (const name of ODD.split(" ")) {
    const more = like ? ["--template", like] : [];
    const { code, out, err } = await here.said(["new", sort, name, ...more, "--json"]);
    expect([name, code, err]).toEqual([name, 0, ""]);
    const { folder: made, files } = JSON.parse(out) as { folder: string; files: string[] };
    for (const file of files) {
      const text = readFileSync(join(made, file), "utf8");
      if (file.endsWith(".ts")) {
        expect(() => stripTypeScriptTypes(text), `${name}: ${file}`).not.toThrow();
        for (const [, keys] of text.matchAll(/plugins: \{(.+)\}/g)) {
          const all = keys!.split(",").map((key) => key.replace(/:.*/, "").trim());
          expect(new Set(all).size, `${name}: ${keys}`).toBe(all.length);
        }
      } else if (/\.ya?ml$/.test(file))
        expect(parseDocument(text).errors, `${name}: ${file}`).toEqual([]);
      else if (file.endsWith(".json")) JSON.parse(text);
    }
  }
});

it("overwrites no existing file", async () => {
  await using here = await createTestFolder();
  expect((await here.said(["new", "provider", "x", "--dir", "a"])).code).toBe(0);
  const before = tree(join(here.path, "a")).map((file) => readFileSync(file, "utf8"));
  const again = await here.said(["new", "middleware", "y", "--dir", "a"]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("a is not empty")]);
  expect(tree(join(here.path, "a")).map((file) => readFileSync(file, "utf8"))).toEqual(before);
});

it("--bare writes only its sources, and check accepts them", async () => {
  await using here = await createTestFolder({
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
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("beta.ts already exists")]);
  const { code, out } = await here.tollgate(["check"]);
  expect([code, out]).toEqual([0, expect.stringContaining("gateway.yaml is valid: 1 provider")]);
});

it.each([
  [["new", "providr", "x"], 'Unknown plugin kind "providr". Did you mean "provider"?'],
  [["new", "provider", "Acme Inc"], 'Invalid name "Acme Inc"'],
  [["new", "provider", "true"], 'Invalid name "true": it is a reserved word of YAML'],
  [["new", "observer", "null"], 'Invalid name "null": it is a reserved word of YAML'],
  [["new", "store", "n".repeat(65)], "at most 64"],
  [["new", "provider", "openai"], "Tollgate's built-in provider"],
  [["new", "protocol", "demo"], "Tollgate's built-in provider"],
  [["new", "protocol", "gemini"], "Tollgate's built-in frontend"],
  [["new", "protocol", "chat-completions"], "Tollgate's built-in frontend"],
  [
    ["new", "provider", "x", "--template", "grpc"],
    "The templates of a provider are openai, anthropic, native",
  ],
  [["new", "store", "x", "--template", "guard"], "A store has only one template"],
])("rejects %j with an explanation", async (words, said) => {
  await using here = await createTestFolder();
  const { code, err } = await here.said(words);
  expect([code, err]).toEqual([1, expect.stringContaining(said)]);
  expect(tree(here.path)).toEqual([]);
});
