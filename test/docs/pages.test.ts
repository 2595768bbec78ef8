// Checks the pages without running them: YAML is valid, examples equal their files, and links and
// names exist. `test/e2e/package/readme.test.ts` runs the requests and commands.
import { existsSync, globSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { builtin } from "../../plugins/index.ts";
import { COMMANDS } from "../../src/cli/main.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { formatProblems } from "../../src/config/problem-report.ts";
import { createLoader } from "../../src/loader/plugin-loader.ts";
import { named, of, PAGES, ROOT } from "./pages.ts";

/** Keys that the examples use. */
function exampleOf(name: string | symbol): string | undefined {
  if (typeof name !== "string") return undefined;
  if (name === "ALERTS_SECRET") return `whsec_${"example+".repeat(4)}`;
  if (name.startsWith("TOLLGATE_") && name.endsWith("_URL"))
    return "postgres://db.internal/tollgate";
  return /_(KEY|TOKEN)$/.test(name) ? `sk-example-${name}-0000-0000` : undefined;
}
const ENV = new Proxy({} as Record<string, string>, {
  get: (_t, name) => exampleOf(name),
  has: () => true,
  getOwnPropertyDescriptor: (_t, name) => {
    const value = exampleOf(name);
    return value === undefined ? undefined : { value, configurable: true, enumerable: true };
  },
});

const load = createLoader({ builtin: builtin as never, hostModules: {} });

describe("every YAML example", () => {
  it("exists", () => expect(of("yaml").length).toBeGreaterThan(0));

  const schema = JSON.parse(
    readFileSync(join(ROOT, "schemas/gateway.schema.json"), "utf8"),
  ) as object;
  const valid = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema);

  it.each(of("yaml").map((b) => [named(b), b] as const))(
    "%s is a config without errors",
    async (_name, block) => {
      const { problems } = await loadConfig(join(ROOT, "gateway.yaml"), {
        env: ENV,
        loadPlugin: load,
        textOverride: block.text,
      });
      expect(formatProblems(problems.filter((p) => p.severity === "error"))).toBe("");
      const tree: unknown = parse(block.text);
      expect(valid(tree), JSON.stringify(valid.errors)).toBe(true);
    },
  );

  it("includes the built-in gateway.yaml, and a typo in a plugin's option fails", async () => {
    const text = await readFile(join(ROOT, "gateway.yaml"), "utf8");
    expect(valid(parse(text)), JSON.stringify(valid.errors)).toBe(true);
    expect(valid(parse("middleware: [{ use: auth, with: { anonymus: true } }]"))).toBe(false);
    expect(valid(parse("providers: { x: { use: openai, with: { api_kee: x } } }"))).toBe(false);
  });
});

describe("every example that a page shows", () => {
  const OWN = /^\/\/ (examples\/[\w-]+\.ts)\n/;
  const shown = of("ts").filter(({ text }) => OWN.test(text));

  it.each(shown.map((b) => [named(b), b] as const))("%s is the file", (_name, { text }) => {
    expect(text).toBe(readFileSync(join(ROOT, OWN.exec(text)![1]!), "utf8"));
  });

  // ```ts examples/x.ts: a part of that file, without its indentation.
  const parts = PAGES.filter((page) => existsSync(join(ROOT, page))).flatMap((page) =>
    [
      ...readFileSync(join(ROOT, page), "utf8").matchAll(
        /^```ts (examples\/[\w-]+\.ts)\n([\s\S]*?)^```$/gm,
      ),
    ].map(([, file, text]) => [page, text!.split("\n", 1)[0]!, file!, text!] as const),
  );
  const withoutIndent = (text: string) => text.replaceAll(/^ +/gm, "");

  it.each(parts)("%s: %s is a part of %s", (_page, _line, file, text) => {
    expect(withoutIndent(readFileSync(join(ROOT, file), "utf8"))).toContain(withoutIndent(text));
  });

  it("every file in examples/ is shown on a page", () => {
    const files = globSync("examples/*.ts", { cwd: ROOT }).sort();
    const onPages = [
      ...shown.map(({ text }) => OWN.exec(text)![1]!),
      ...parts.map(([, , file]) => file),
    ];
    expect([...new Set(onPages)].sort()).toEqual(files);
  });

  it("every package in examples/ is in the list", () => {
    const list = readFileSync(join(ROOT, "examples/packages/README.md"), "utf8");
    const packages = globSync("examples/packages/*/", { cwd: ROOT }).map((path) => basename(path));
    expect(packages.length).toBeGreaterThan(7);
    expect(packages.filter((name) => !list.includes(`(${name}`))).toEqual([]);
  });
});

describe("every link and every file that a page names", () => {
  const pages = PAGES.filter((page) => existsSync(join(ROOT, page)));
  it.each(pages)("%s exists", (page) => {
    const text = readFileSync(join(ROOT, page), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((m) =>
      join(dirname(page), m[1]!),
    );
    const named = /^(docs\/|CONTRIBUTING|SECURITY)/.test(page)
      ? [...text.matchAll(/`((?:src|plugins|test|docs|examples|schemas)\/[\w./-]+)`/g)].map(
          (m) => m[1]!,
        )
      : [];
    expect([...links, ...named].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe("every command that a page names", () => {
  it.each(PAGES.filter((page) => existsSync(join(ROOT, page))))("%s: exists", (page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const spoken = [...text.matchAll(/(?:npx |`)tollgate ([a-z]+(?:-[a-z]+)*)/g)].map((m) => m[1]!);
    expect(spoken.filter((name) => !Object.hasOwn(COMMANDS, name))).toEqual([]);
  });
});

describe("commands", () => {
  const scripts = (
    JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    }
  ).scripts;
  it.each(
    of("sh")
      .filter((b) => b.text.startsWith("npm"))
      .map((b) => [named(b), b] as const),
  )("%s are scripts that exist", (_name, block) => {
    for (const [, script] of block.text.matchAll(
      /npm (?:run (?:-s )?)?(start|test|[\w:]+)(?: |$|\n)/g,
    ))
      if (script !== "ci" && script !== "install" && script !== "i")
        expect(scripts).toHaveProperty(script!);
  });
});
