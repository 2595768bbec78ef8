// Tests the kit by the defects that it finds: defects are planted one by one into valid plugins,
// and the named check finds each. docs/plugins/defects.md lists them.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Definition, Protocol } from "tollgate/plugin";
import {
  conformanceChecks,
  hookChecks,
  protocolChecks,
  storeChecks,
  createStoreFactory,
  type Check,
  type HookCases,
} from "tollgate/testing";
import { checkSurface } from "../../../src/cli/check-plugin/check-package.ts";
import { packageFiles } from "../../../src/cli/commands/plugins/new.ts";
import { middlewareDefects } from "./middlewares.ts";
import { frontendDefects, observerDefects, protocolDefects, storeDefects } from "./others.ts";
import { packageDefects } from "./packages.ts";
import { planted, removed, type Defect } from "./planted.ts";
import { providerDefects } from "./providers.ts";

const DEFECTS: readonly Defect[] = [
  ...providerDefects,
  ...protocolDefects,
  ...frontendDefects,
  ...middlewareDefects,
  ...observerDefects,
  ...storeDefects,
];

/** Every check of the kit for the plugins in this folder. */
async function checksOf(folder: string, template: string, apart: boolean): Promise<Check[]> {
  const { tollgate } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const recordings = tollgate.recordings && { recordings: join(folder, tollgate.recordings) };
  const module = pathToFileURL(join(folder, "src/index.ts"));
  const made = (await import(module.href)) as {
    default: Definition;
    protocol?: () => Protocol;
  };
  if (made.protocol) return protocolChecks(made.protocol(), { trials: 5, ...recordings });
  return [
    ...conformanceChecks(made.default, { ...tollgate, ...recordings, ...(apart && { module }) }),
    ...(tollgate.cases
      ? hookChecks(
          made.default,
          JSON.parse(readFileSync(join(folder, tollgate.cases), "utf8")) as HookCases,
        )
      : []),
    ...(template === "store" ? storeChecks(createStoreFactory(made.default, tollgate.with)) : []),
  ];
}

const named = (checks: readonly Check[], wanted: string): Check | undefined =>
  checks.find(
    ({ name }) => name === wanted || name === `acme: ${wanted}` || name === `Acme: ${wanted}`,
  );

describe("a plugin", () => {
  it.each(DEFECTS.map((defect) => [`${defect.in}: ${defect.what}`, defect] as const))(
    "%s",
    async (_title, defect) => {
      const folder = planted(defect);
      onTestFinished(() => {
        removed(folder);
        process.removeAllListeners("acme");
        Reflect.deleteProperty(globalThis, "acmeSeen");
      });
      const checks = await checksOf(folder, defect.in, defect.apart === true);
      const found = named(checks, defect.check);
      expect(found, `there is no check "${defect.check}"`).toBeDefined();
      await expect(found!.run()).rejects.toThrow(defect.says);
    },
  );

  it("each of those checks passes without a planted defect", async () => {
    for (const template of new Set(DEFECTS.map((defect) => defect.in))) {
      const own = DEFECTS.filter((defect) => defect.in === template);
      const folder = planted({ ...own[0]!, from: own[0]!.from, to: own[0]!.from });
      const checks = await checksOf(
        folder,
        template,
        own.some(({ apart }) => apart),
      );
      for (const check of new Set(own.map((defect) => defect.check)))
        await named(checks, check)!.run();
      removed(folder);
    }
  });
});

describe("a package", () => {
  /** As after `npm run build`, except for compiled code. */
  const built = () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-package-"));
    onTestFinished(() => removed(folder));
    for (const [path, text] of packageFiles({ kind: "row", variant: undefined, name: "acme" })) {
      const file = join(folder, path);
      mkdirSync(join(file, ".."), { recursive: true });
      writeFileSync(file, text);
    }
    cpSync(join(folder, "src"), join(folder, "dist"), { recursive: true });
    writeFileSync(join(folder, "dist/index.d.ts"), "export {};");
    writeFileSync(
      join(folder, "dist/index.js"),
      'export default { "~tollgate": "provider", api: 1, name: "acme", summary: "Acme", ' +
        'options: { type: "object", additionalProperties: false, properties: { base_url: { type: "string", minLength: 1, ' +
        'description: "Base URL of the API, without the protocol\'s own path", default: "https://api.acme.example/v1" } } }, ' +
        'credential: { type: "object", additionalProperties: false, required: ["api_key"], properties: { api_key: { type: "string", ' +
        'minLength: 1, "x-secret": true, description: "API key" } } }, setup: () => ({ endpoints: [] }) };',
    );
    return folder;
  };

  it("without a defect passes", async () => {
    const { findings } = await checkSurface(built());
    expect(findings.filter(({ problem }) => problem !== undefined)).toEqual([]);
  });

  it.each(packageDefects.map((defect) => [defect.what, defect] as const))(
    "%s",
    async (_what, { plant, check, says }) => {
      const folder = built();
      const file = join(folder, "package.json");
      const manifest = JSON.parse(readFileSync(file, "utf8"));
      plant(manifest, folder);
      writeFileSync(file, JSON.stringify(manifest));
      const { findings } = await checkSurface(folder, { packs: check.startsWith("package:") });
      const found = findings.find((one) => one.check === check && one.problem !== undefined);
      expect(found?.problem, JSON.stringify(findings.filter((one) => one.problem))).toMatch(says);
    },
  );
});

it("docs/plugins/defects.md equals this list", () => {
  const row = (where: string, what: string, check: string) => `| ${where} | ${what} | ${check} |`;
  const rows = [
    ...DEFECTS.map((one) => row(one.in.replace("-", ", "), one.what, one.check)),
    ...packageDefects.map((one) => row("package", one.what, one.check)),
  ];
  const text = `# Defects that the plugin test kit finds

This page lists ${rows.length} defects that the plugin test kit detects. It is for plugin authors who want to know what the kit checks.

The test suite (\`test/plugins/defects\`) plants each defect into a working plugin from \`tollgate new\`. The named check must then fail.
If the kit misses a defect in your plugin, report it as a bug of the kit.

| Template | Defect | Check that fails |
|---|---|---|
${rows.join("\n")}
`;
  const file = join(import.meta.dirname, "../../../docs/plugins/defects.md");
  if (process.env["UPDATE_README"] === "1") writeFileSync(file, text);
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(rows.length).toBeGreaterThanOrEqual(40);
});
