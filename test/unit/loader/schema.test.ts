import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readDefaultConfig } from "../../../src/lib/package-root.ts";
import { EDITOR_CONFIG_SCHEMA } from "../../../src/config/schema/config-schema.ts";
import {
  editorSchema,
  editorSchemaText,
  type DefinedPlugin,
} from "../../../src/loader/editor-schema.ts";
import { type Definition, defineProvider } from "../../../src/plugin/index.ts";
import { builtin } from "../config/stubs.ts";

/** A plugin whose schema uses all features: references, alternatives, and rules across options. */
const rich = defineProvider({
  api: 1,
  name: "rich",
  summary: "Uses everything",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["size"],
    definitions: {
      size: { type: "object", additionalProperties: false, properties: { w: { type: "integer" } } },
    },
    properties: {
      size: { $ref: "#/definitions/size" },
      mode: { enum: ["a", "b"], description: "Which" },
      extra: { type: "string", description: "Only with b" },
    },
    if: { required: ["extra"] },
    then: { required: ["mode"], properties: { mode: { const: "b" } } },
  },
  credential: {
    type: "object",
    additionalProperties: false,
    required: ["id", "secret"],
    properties: {
      id: { type: "string", maxLength: 5, description: "Who" },
      secret: { type: "string", "x-secret": true, description: "What only you know" },
    },
  },
  setup: () => ({ endpoints: [] }),
});

const known: DefinedPlugin[] = [
  { kind: "provider", use: "rich", definition: rich as unknown as Definition },
];
for (const [kind, modules] of Object.entries(builtin))
  for (const [use, module] of Object.entries(modules)) {
    const { default: definition } = (await module()) as { default: Definition };
    known.push({ kind: kind as DefinedPlugin["kind"], use, definition });
  }

const schema = editorSchema(known);
/** Like an editor: plain draft-07, strict about unknown keywords except for our own. */
const ajv = new Ajv({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allErrors: true,
  keywords: ["x-secret", "x-account"],
  formats: { uri: true, date: true },
});
const validate = ajv.compile(schema);
const errors = (text: string) => {
  validate(parse(text));
  return [...new Set((validate.errors ?? []).map((e) => e.instancePath))];
};

it("is draft-07, and the shipped gateway.yaml is valid", () => {
  expect(ajv.validateSchema(schema)).toBe(true);
  expect(schema["$schema"]).toBe("http://json-schema.org/draft-07/schema#");
  expect(errors(readDefaultConfig())).toEqual([]);
});

describe("validates the options of every plugin", () => {
  it.each([
    ["store: { use: sqlite, with: { durabilty: power } }", "/store/with"],
    ["store: { use: sqlite, with: { durability: some } }", "/store/with/durability"],
    ["middleware: [{ use: guard, with: { words: [x], wrods: 1 } }]", "/middleware/0/with"],
    ["middleware: [{ use: guard }]", "/middleware/0"],
    ["frontends: [{ use: messages, with: { path: /x } }]", "/frontends/0/with"],
    ["providers: { a: { use: openai, with: { api_key: x, base_ulr: y } } }", "/providers/a/with"],
    ["providers: { openai: { with: { api_key: x, base_ulr: y } } }", "/providers/openai/with"],
    ["providers: { openai: { with: {} } }", "/providers/openai/with"],
    ["providers: { openai: {} }", "/providers/openai"],
    [
      "providers: { openai: { credentials: [{ name: a, with: { apikey: x } }] } }",
      "/providers/openai/credentials/0/with",
    ],
    [
      "providers: { openai: { with: { api_key: x }, credentials: [{ name: a, with: { api_key: x } }] } }",
      "/providers/openai/with",
    ],
    ["providers: { demo: { with: { x: 1 } } }", "/providers/demo/with"],
    [
      "providers: { r: { use: rich, with: { id: a, secret: b, size: { h: 1 } } } }",
      "/providers/r/with/size",
    ],
    [
      "providers: { r: { use: rich, with: { id: a, secret: b, size: {}, extra: x } } }",
      "/providers/r/with",
    ],
    [
      "providers: { r: { use: rich, with: { id: toolong, secret: b, size: {} } } }",
      "/providers/r/with/id",
    ],
    ["listne: {}", ""],
    ["listen: { port: 8787x }", "/listen/port"],
    ["shutdown: 300", "/shutdown"],
    ["models: { a: [] }", "/models/a"],
    ["models: { a: { candidates: [b/c], pick: best } }", "/models/a/pick"],
  ])("%s fails", (text, at) => expect(errors(text)).toContain(at));
});

describe("accepts", () => {
  it.each([
    "providers: { openai: { use: openai, with: { api_key: x, base_url: https://x.test, region: eu } } }",
    "providers: { openai: { with: { api_key: x } }, demo: , d2: demo }",
    "providers: { openai: { with: { region: eu }, credentials: [{ name: a, with: { api_key: x } }] } }",
    "providers: { r: { use: rich, with: { id: a, secret: b, size: { w: 1 }, extra: x, mode: b } } }",
    "providers: { other: { use: ./mine.ts, with: { anything: goes } } }",
    "store: sqlite",
    "middleware: [auth, { use: guard, with: { words: [x] }, for: { models: [a] } }]",
    "models: { a: b/c, d: [b/c], e: { candidates: [b/c], fallback_on: [timeout] } }",
    "workers: auto",
    "max_body: 1MiB",
  ])("%s", (text) => expect(errors(text)).toEqual([]));

  it("a reference where a value is no map or list, and only there", () => {
    const any = "${env:X}";
    expect(
      errors(`
listen: { port: "${any}", host: "${any}" }
strict: "${any}"
workers: "${any}"
shutdown: "${any}"
log: { level: "${any}" }
store: { use: sqlite, with: { durability: "${any}" } }
providers: { r: { use: rich, with: { id: "${any}", secret: "${any}", size: { w: "${any}" }, mode: "${any}" } } }
models: { a: "${any}" }`),
    ).toEqual([]);
    expect(errors(`listen: "${any}"`)).toEqual(["/listen"]);
    expect(errors('listen: { port: "$X" }')).toContain("/listen/port");
  });
});

describe("descriptions for editors", () => {
  it("exist for every key of the gateway and every option", () => {
    const text = JSON.stringify(schema);
    const described = (value: unknown): string[] =>
      typeof value !== "object" || value === null
        ? []
        : Object.entries(value).flatMap(([key, each]) =>
            key === "description" && typeof each === "string" ? [each] : described(each),
          );
    const all = [EDITOR_CONFIG_SCHEMA, ...known.map((k) => k.definition as object)].flatMap(
      described,
    );
    expect(all.length).toBeGreaterThan(50);
    for (const description of all) expect(text).toContain(JSON.stringify(description));
  });
  it("exist for every key of the base schema", () => {
    const bare: string[] = [];
    const walk = (node: any, path: string) => {
      for (const [key, each] of Object.entries<any>(node?.properties ?? {})) {
        const form = each.description ?? each.then?.description ?? each.if;
        if (form === undefined) bare.push(`${path}.${key}`);
        walk(each, `${path}.${key}`);
      }
      for (const part of ["else", "then", "items", "additionalProperties"])
        if (typeof node?.[part] === "object") walk(node[part], path);
    };
    walk(EDITOR_CONFIG_SCHEMA, "");
    expect(bare).toEqual([]);
  });
  it("are the same for any order of plugins", () => {
    expect(editorSchemaText([...known].reverse())).toBe(editorSchemaText(known));
    expect(editorSchemaText(known)).not.toContain("x-expects");
  });
});
