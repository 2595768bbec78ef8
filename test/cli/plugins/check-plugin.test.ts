// `tollgate check-plugin`: its output for a valid package, an invalid one, and none, and its exit
// codes.
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { jsonResponse, say, scriptedModel, startUpstream } from "tollgate/testing";
import { createTestFolder, type TestFolder } from "../../kit/process/command-line.ts";
import { root } from "../../kit/process/program.ts";

/** The output of `tollgate new` after `npm install && npm run build`. */
async function made(...sort: string[]): Promise<TestFolder & { readonly plugin: string }> {
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const here = await createTestFolder();
  expect(
    (await here.said(["new", ...(sort.length > 0 ? sort : ["observer", "acme"]), "--dir", "acme"]))
      .code,
  ).toBe(0);
  const plugin = join(here.path, "acme");
  mkdirSync(join(plugin, "node_modules"));
  symlinkSync(root, join(plugin, "node_modules/tollgate"));
  mkdirSync(join(plugin, "dist"));
  const source = readFileSync(join(plugin, "src/index.ts"), "utf8");
  writeFileSync(join(plugin, "dist/index.js"), stripTypeScriptTypes(source));
  writeFileSync(join(plugin, "dist/index.d.ts"), "export {};\n");
  return { ...here, plugin };
}

function edit(file: string, change: (text: string) => string): void {
  const before = readFileSync(file, "utf8");
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(file, after);
}

describe("tollgate check-plugin", () => {
  it("prints one line for a valid package, each check with --all, and the full result with --json", async () => {
    await using at = await made();
    const { code, out, err } = await at.tollgate(["check-plugin", "acme"]);
    expect([code, err]).toEqual([0, ""]);
    const [, passed, all] =
      /^tollgate-observer-acme@0\.1\.0 \(observer acme\): (\d+) of (\d+) checks passed\n$/.exec(
        out,
      )!;
    expect(passed).toBe(all);
    const told = JSON.parse((await at.tollgate(["check-plugin", "acme", "--json"])).out);
    expect(told).toMatchObject({
      ok: true,
      name: "tollgate-observer-acme",
      version: "0.1.0",
      plugins: ["observer acme"],
      passed: Number(all),
      failed: 0,
    });
    const shown = (await at.tollgate(["check-plugin", "acme", "--all"])).out.trim().split("\n");
    expect(shown.slice(0, -1)).toEqual(told.findings.map(({ check }: any) => `ok     ${check}`));
  });

  it("prints each problem with a fix and exits with 1; --write updates the README", async () => {
    await using at = await made();
    edit(join(at.plugin, "package.json"), (text) => text.replace('"node": ">=24"', ""));
    edit(join(at.plugin, "README.md"), (text) => text.replace("| `slow_ms` |", "| `slow` |"));
    edit(join(at.plugin, "dist/index.js"), (text) => `process.env.HOME;\n${text}`);
    const { code, out } = await at.tollgate(["check-plugin", "acme"]);
    expect(code).toBe(1);
    const wrong = [...out.matchAll(/^wrong {2}(.+)\n {7}(\S.*)$/gm)].map(([, what]) => what);
    expect(wrong).toEqual(
      expect.arrayContaining(["manifest: engines", "readme: the table of its options"]),
    );
    expect(out).toContain("npx tollgate check-plugin . --write");
    const [, passed, all] = /: (\d+) of (\d+) checks passed\n$/.exec(out)!;
    expect(Number(all) - Number(passed)).toBe(wrong.length);
    const told = JSON.parse((await at.tollgate(["check-plugin", "acme", "--write", "--json"])).out);
    expect(told).toMatchObject({ ok: false, failed: wrong.length - 1 });
    expect(readFileSync(join(at.plugin, "README.md"), "utf8")).toContain("| `slow_ms` |");
  });

  describe("--live", () => {
    const KEY = "sk-live-4711";
    const args = ["check-plugin", "acme", "--live", "--json"];
    async function provider(url: string, live: object[] = [PRICED]) {
      const at = await made("provider", "acme", "--template", "openai");
      edit(join(at.plugin, "package.json"), (text) => {
        const { tollgate, ...rest } = JSON.parse(text);
        const told = { ...tollgate, with: { base_url: `${url}/v1` }, live };
        return JSON.stringify({ ...rest, tollgate: told });
      });
      return at;
    }
    const PRICED = { model: "large-2", price: { input: 3, output: 15 } };
    const live = ({ out }: { out: string }) =>
      JSON.parse(out).findings.filter(({ check }: any) => check.startsWith("live: "));

    it("calls the provider, streaming and non-streaming, with the key from the environment, and does not print the key", async () => {
      await using up = await startUpstream(scriptedModel(say("Hello"), ["large-2"]));
      await using at = await provider(up.url);
      const ran = await at.tollgate(args, { env: { ACME_API_KEY: KEY } });
      expect(live(ran)).toEqual([
        { check: "live: acme: models" },
        { check: "live: acme: credential" },
        { check: "live: large-2" },
      ]);
      expect([ran.code, ran.err]).toEqual([0, ""]);
      const asked = up.requests.filter(({ method }) => method === "POST");
      expect(asked.map(({ headers }) => headers["authorization"])).toEqual([
        `Bearer ${KEY}`,
        `Bearer ${KEY}`,
      ]);
      expect(ran.out).not.toContain(KEY);
      const before = up.requests.length;
      await at.tollgate(["check-plugin", "acme"], { env: { ACME_API_KEY: KEY } });
      expect(up.requests).toHaveLength(before);
    });

    it("reports a missing key, model, or provider, sends nothing, and exits with 1", async () => {
      await using up = await startUpstream(scriptedModel(say("Hello"), ["large-2"]));
      await using at = await provider(up.url, [{ model: "large-2" }]);
      const ran = await at.tollgate(args, { env: { ACME_API_KEY: "" } });
      expect(ran.code).toBe(1);
      expect(live(ran)).toEqual([
        { check: "live: acme: models", problem: expect.stringContaining('"live": [{ "model"') },
        {
          check: "live: acme: credential",
          problem: "no request was sent: set ACME_API_KEY in the environment",
        },
      ]);
      expect(up.requests).toEqual([]);
      await using other = await made();
      const none = await other.tollgate(args);
      expect([none.code, live(none)]).toEqual([
        1,
        [
          {
            check: "live: a provider",
            problem: "the package has no provider, and only providers are tested",
          },
        ],
      ]);
    });

    it("reports a refusal as a refusal, and sends nothing that could cost more than the cap", async () => {
      await using up = await startUpstream({
        "*": jsonResponse({ error: { message: "No." } }, 401),
      });
      await using at = await provider(up.url, [PRICED, { ...PRICED, capUsd: 0.000001 }]);
      const ran = await at.tollgate(args, { env: { ACME_API_KEY: KEY } });
      expect(ran.code).toBe(1);
      const [refused, dear] = live(ran).slice(2);
      expect(refused.problem).toContain("returned status 401");
      expect(dear.problem).toContain("capUsd is 0.000001");
      expect(up.requests).toHaveLength(2);
    });
  });

  it("finds an installed package by its name", async () => {
    await using at = await made();
    mkdirSync(join(at.path, "node_modules"));
    renameSync(at.plugin, join(at.path, "node_modules/tollgate-observer-acme"));
    await at.write("package.json", "{}");
    const { code, out, err } = await at.tollgate(["check-plugin", "tollgate-observer-acme"]);
    expect([code, err, out]).toEqual([0, "", expect.stringContaining("checks passed")]);
  });

  it.each([
    [["nowhere"], "nowhere is not a directory with a package.json, and not an installed package."],
    [[], ". is not a directory with a package.json"],
    [["a", "b"], "tollgate check-plugin --help"],
    [["a", "--wirte"], '"--wirte". Did you mean "--write"?'],
    [[], ". is not a directory with a package.json"],
    [["./a"], "./a is not a directory with a package.json"],
  ])("rejects %j with an explanation", async (words, said) => {
    await using at = await createTestFolder();
    const { code, out, err } = await at.said(["check-plugin", ...words]);
    expect([code, out, err]).toEqual([1, "", expect.stringContaining(said)]);
  });
});
