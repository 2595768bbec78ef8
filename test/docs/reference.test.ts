// The generated reference pages are current and complete, and every example on them is valid.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { referencePages, ROOT, stalePages, writeReference } from "../../.build/reference.ts";
import { allCommands, jsonMembersOf, JSON_OUTPUT } from "../../.build/reference/cli.ts";
import { exampleValue, inlineExample } from "../../.build/reference/config-examples.ts";
import { collectErrorCodes } from "../../.build/reference/error-codes.ts";
import { GROUPS } from "../../.build/reference/errors.ts";
import { REQUEST_HEADERS, RESPONSE_HEADERS } from "../../.build/reference/http-api.ts";
import { collectLogMessages } from "../../.build/reference/log-lines.ts";
import { MAX_LINES } from "../../.build/reference/markdown.ts";
import { gatewayEvents, REQUEST_LINES } from "../../.build/reference/monitoring.ts";
import { settingsOf } from "../../.build/reference/settings.ts";
import { builtin } from "../../plugins/index.ts";
import { EDITOR_CONFIG_SCHEMA } from "../../src/config/schema/config-schema.ts";
import { DIALECT_RULES, type Schema } from "../../src/config/schema-dialect.ts";

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
if (process.env["UPDATE_README"] === "1") await writeReference();
const pages = await referencePages();
const pageAt = (path: string) => pages.find((page) => page.path === `docs/reference/${path}`)!.text;

describe("the generated reference", () => {
  it.each(pages.map(({ path, text }) => [path, text] as const))(
    "%s is current: `npm run docs:reference` writes it",
    (path, text) => expect(read(path)).toBe(text),
  );

  it("has no page that no generator writes", () => expect(stalePages(pages)).toEqual([]));

  it(`has pages of at most ${MAX_LINES} lines`, () => {
    const long = pages.filter(
      ({ path, text }) => path.endsWith(".md") && text.trimEnd().split("\n").length > MAX_LINES,
    );
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  it("has each heading of a page once", () => {
    for (const { path, text } of pages) {
      const headings = [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.+)$/gm)];
      const names = headings.map(([, heading]) => heading!);
      expect([path, names.filter((name, i) => names.indexOf(name) !== i)]).toEqual([path, []]);
    }
  });
});

describe("the configuration reference", () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const keyword of ["x-secret", "x-origin", "x-account", "x-path"]) ajv.removeKeyword(keyword);
  /** A key is valid if one of its forms is, with references to variables in place of secrets. */
  const isValid = (schema: Schema, value: unknown): boolean =>
    (typeof value === "string" && value.startsWith("${env:")) || ajv.validate(schema, value);

  const core = settingsOf(EDITOR_CONFIG_SCHEMA, "", /price\.(?:over|tiers|variants)\b./).map(
    (setting) => [setting.path, setting, undefined] as const,
  );
  const options = Object.values(builtin).flatMap((plugins) =>
    Object.entries(plugins as Record<string, () => Promise<{ default: { options?: Schema } }>>),
  );

  it("has each key once, with an example that its schema accepts", () => {
    const wrong = core.filter(([, setting]) => {
      const value = exampleValue(setting);
      return !setting.isMap && value !== undefined && !isValid(setting.schema, value);
    });
    expect(wrong.map(([path, setting]) => `${path}: ${inlineExample(setting)}`)).toEqual([]);
    const all = pages.filter(({ path }) => path.includes("/configuration/"));
    const missing = core.filter(
      ([path]) =>
        !path.includes(".price.") && !all.some(({ text }) => text.includes(`# \`${path}\`\n`)),
    );
    expect(missing.map(([path]) => path)).toEqual([]);
    const bare = core.filter(
      ([, setting]) => !setting.isMap && exampleValue(setting) === undefined,
    );
    expect(
      bare.map(([path]) => path).filter((path) => !/\.price\.|\.with$|\.can$/.test(path)),
    ).toEqual([]);
  });

  it.each(options)("has an example of each option of %s", async (name, load) => {
    const { options: schema } = (await load()).default;
    for (const setting of settingsOf(schema ?? {})) {
      const value = exampleValue(setting, name);
      if (setting.isMap) continue;
      expect([setting.path, value !== undefined]).toEqual([setting.path, true]);
      expect([setting.path, value, isValid(setting.schema, value)]).toEqual([
        setting.path,
        value,
        true,
      ]);
      const line = inlineExample(setting, name)!;
      expect(Object.values(parse(line) as object)).toEqual([value]);
    }
  });

  it("uses keywords of the dialect", () => {
    expect(DIALECT_RULES.options).toMatchObject({ strict: true });
  });
});

describe("the command-line reference", () => {
  it("names the JSON output of each command", async () => {
    const names = (await allCommands()).map(({ name }) => name);
    const silent = names.filter(
      (name) => jsonMembersOf(name) === undefined && JSON_OUTPUT[name] === undefined,
    );
    expect(silent).toEqual([]);
    expect(Object.keys(JSON_OUTPUT).filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe("the error reference", () => {
  const listed = GROUPS.flatMap(({ texts }) => Object.keys(texts));
  it("has each code of the source, and no other", () => {
    const found = [...collectErrorCodes().keys()];
    expect(found.filter((code) => !listed.includes(code))).toEqual([]);
    expect(listed.filter((code) => !found.includes(code))).toEqual([]);
    expect(found.length).toBeGreaterThan(200);
  });
  it("has each code once", () => {
    expect(listed.filter((code, i) => listed.indexOf(code) !== i)).toEqual([]);
  });
});

describe("the header reference", () => {
  it("has each header that the gateway sends, and no other tollgate header", () => {
    // The console's own header protects its session, and is no part of the API.
    const sources = globSync("src/{pipeline,runtime}/**/*.ts", { cwd: ROOT })
      .filter((path) => !path.startsWith("src/runtime/access/"))
      .map(read);
    const named = new Set(
      sources.flatMap((text) =>
        [
          ...text.matchAll(
            /"((?:x-tollgate|service-zdr|retry-after|x-request|request-id|server-timing|idempotency)[a-z-]*)"/g,
          ),
        ].map(([, name]) => name!),
      ),
    );
    const documented = [...REQUEST_HEADERS, ...RESPONSE_HEADERS].map(([name]) => name);
    expect([...named].filter((name) => !documented.includes(name))).toEqual([]);
    const own = documented.filter((name) => /^(?:x-tollgate|service-zdr)/.test(name));
    expect(own.filter((name) => !named.has(name))).toEqual([]);
  });
});

describe("the reference of logs and events", () => {
  it("has the request lines as the gateway writes them", () => {
    const source = read("src/pipeline/stages/settle.ts");
    expect(REQUEST_LINES.filter(([message]) => !source.includes(`"${message}"`))).toEqual([]);
    expect(collectLogMessages().length).toBeGreaterThan(80);
  });
  it("has each event with a description", () => {
    const types = gatewayEvents().map(({ type }) => type);
    const source = read("src/plugin/gateway-event.ts");
    const named = [...source.matchAll(/^ {8}type: "(\w+)";/gm)].map(([, type]) => type);
    expect(types).toEqual(named);
    expect(pageAt("gateway-events.md")).toContain("## `quarantined`");
  });
});
