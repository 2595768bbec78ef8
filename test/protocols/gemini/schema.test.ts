// Schemas for models that support a part of JSON Schema: converted, reduced with a warning, or
// rejected.
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { getFault, type JsonObject } from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { createCallContext, encodeOutgoing } from "tollgate/testing";
import { createChatRequest } from "../../kit/requests.ts";
import { trialCount } from "../../kit/law-effort.ts";

function declared(schema: object) {
  const call = createCallContext({ model: "gemini-2.0-flash" });
  const request = createChatRequest({ tools: [{ type: "function", name: "f", schema }] as never });
  const { body } = encodeOutgoing(gemini().client!, request, call);
  const [tool] = JSON.parse(JSON.stringify(body!["tools"]))[0].functionDeclarations;
  return {
    parameters: tool.parameters,
    losses: call.losses.map(({ field, code }) => `${field} ${code}`),
  };
}
const one = (schema: object) => {
  const { parameters, losses } = declared({ type: "object", properties: { a: schema } });
  return { is: parameters.properties.a, lost: losses.length > 0 };
};

describe("converts without loss", () => {
  it.each([
    [{ type: ["string", "null"] }, { type: "string", nullable: true }],
    [{ type: ["string", "integer"] }, { anyOf: [{ type: "string" }, { type: "integer" }] }],
    [{ const: "x" }, { type: "string", enum: ["x"] }],
    [{ enum: ["a", null] }, { type: "string", enum: ["a"], nullable: true }],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, { type: "string", nullable: true }],
    [
      { type: "integer", exclusiveMinimum: 0 },
      { type: "integer", minimum: 1 },
    ],
    [
      {
        allOf: [
          { type: "object", properties: { x: { type: "string" } }, required: ["x"] },
          { properties: { y: { type: "number" } } },
        ],
      },
      {
        type: "object",
        properties: { x: { type: "string" }, y: { type: "number" } },
        required: ["x"],
      },
    ],
    [
      { type: "object", properties: { x: {} }, required: ["x", "gone"] },
      { type: "object", properties: { x: {} }, required: ["x"] },
    ],
    [{ type: "object", properties: {}, required: [] }, { type: "object" }],
    [{ type: "array" }, { type: "array", items: {} }],
    [
      { $schema: "x", $comment: "y", type: "string", format: "date-time", description: "d" },
      { type: "string", format: "date-time", description: "d" },
    ],
  ])("%j", (from, to) => {
    expect(one(from)).toEqual({ is: to, lost: false });
  });

  it("a reference with its target, and its sibling keywords", () => {
    const { parameters, losses } = declared({
      type: "object",
      properties: { a: { $ref: "#/$defs/x~1y", description: "mine" }, b: { $ref: "#/$defs/x~1y" } },
      $defs: { "x/y": { type: "string", description: "its" } },
    });
    expect(parameters.properties).toEqual({
      a: { type: "string", description: "mine" },
      b: { type: "string", description: "its" },
    });
    expect(losses).toEqual([]);
  });
});

describe("converts with a warning", () => {
  it.each([
    [
      { type: "object", properties: { x: { type: "string" } }, additionalProperties: false },
      { type: "object", properties: { x: { type: "string" } } },
    ],
    [
      { oneOf: [{ type: "string" }, { type: "number" }] },
      { anyOf: [{ type: "string" }, { type: "number" }] },
    ],
    [{ enum: [1, 2] }, {}],
    [
      { type: "number", exclusiveMaximum: 5 },
      { type: "number", maximum: 5 },
    ],
    [{ type: "string", format: "email" }, { type: "string" }],
    [{ type: "integer", multipleOf: 2 }, { type: "integer" }],
    [
      { type: "array", prefixItems: [{ type: "string" }], items: { type: "string" } },
      { type: "array", items: { type: "string" } },
    ],
    [false, {}],
  ])("%j", (from, to) => {
    expect(one(from as object)).toEqual({ is: to, lost: true });
  });
});

/** Each twice as large as the previous one. */
const laughs = (depth: number) => ({
  type: "object",
  properties: { a: { $ref: "#/$defs/l0" } },
  $defs: Object.fromEntries(
    Array.from({ length: depth }, (_, i) => {
      const next = i === depth - 1 ? { type: "string" } : { $ref: `#/$defs/l${i + 1}` };
      return [`l${i}`, { type: "object", properties: { a: next, b: next } }];
    }),
  ),
});

it("a property may have any name", () => {
  const properties = JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}');
  expect(
    JSON.stringify(declared({ type: "object", properties, required: ["__proto__"] }).parameters),
  ).toBe(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}},"required":["__proto__"]}',
  );
});

it("a part that is used twice is not recursive", () => {
  const base = { type: "object", properties: { id: { type: "string" } } };
  const { parameters } = declared({
    type: "object",
    properties: {
      a: {
        allOf: [{ $ref: "#/$defs/base" }, { properties: { parent: { $ref: "#/$defs/base" } } }],
      },
    },
    $defs: { base },
  });
  expect(parameters.properties.a.properties).toEqual({ id: { type: "string" }, parent: base });
});

describe("rejects", () => {
  it.each([
    ["a schema inside itself", { type: "object", properties: { next: { $ref: "#" } } }],
    [
      "two in a circle",
      {
        type: "object",
        properties: { a: { $ref: "#/$defs/a" } },
        $defs: {
          a: { properties: { b: { $ref: "#/$defs/b" } } },
          b: { properties: { a: { $ref: "#/$defs/a" } } },
        },
      },
    ],
    ["a few lines that spell a billion", laughs(30)],
    [
      "a few lines that add up a billion",
      {
        type: "object",
        properties: { a: { $ref: "#/$defs/l0" } },
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, i) => [
            `l${i}`,
            i === 39
              ? { type: "string" }
              : { allOf: [{ $ref: `#/$defs/l${i + 1}` }, { $ref: `#/$defs/l${i + 1}` }] },
          ]),
        ),
      },
    ],
    [
      "a chain of references without end",
      {
        type: "object",
        properties: { a: { $ref: "#/$defs/l0" } },
        $defs: Object.fromEntries(
          Array.from({ length: 20_000 }, (_, i) => [
            `l${i}`,
            i === 19_999 ? { type: "string" } : { $ref: `#/$defs/l${i + 1}` },
          ]),
        ),
      },
    ],
    ["a reference that is no address", { type: "object", properties: { a: { $ref: "#/%zz" } } }],
    ["a reference to nowhere", { type: "object", properties: { a: { $ref: "#/$defs/none" } } }],
    [
      "a reference to elsewhere",
      { type: "object", properties: { a: { $ref: "https://e.com/s.json" } } },
    ],
  ])("%s", (_name, schema) => {
    let thrown: unknown;
    try {
      declared(schema);
    } catch (error) {
      thrown = error;
    }
    expect(getFault(thrown)).toMatchObject({
      kind: "unsupported",
      code: "unsupported_schema",
      param: "tools.f",
    });
    expect(getFault(thrown)!.message).toContain("tools.f");
  });
});

const KNOWN = new Set(
  "type format title description nullable enum items properties required minItems maxItems minimum maximum minLength maxLength pattern anyOf propertyOrdering default example minProperties maxProperties".split(
    " ",
  ),
);

/** Every keyword of a schema, at every depth. */
function wordsIn(schema: JsonObject, found = new Set<string>()): Set<string> {
  for (const [word, value] of Object.entries(schema)) {
    found.add(word);
    if (word === "properties")
      for (const inner of Object.values(value as object)) wordsIn(inner, found);
    else if (word === "items") wordsIn(value as JsonObject, found);
    else if (word === "anyOf")
      for (const inner of value as readonly JsonObject[]) wordsIn(inner, found);
  }
  return found;
}

describe("any schema", () => {
  const inner = fc.memo((depth) => (depth <= 1 ? fc.constant({}) : schemaOf(depth - 1)));
  const schemaOf = (depth: number): fc.Arbitrary<object> =>
    fc.record(
      {
        type: fc.constantFrom(
          "string",
          "integer",
          "object",
          "array",
          ["string", "null"],
          ["object", "array"],
        ),
        properties: fc.dictionary(fc.constantFrom("a", "b", "$ref", "type"), inner(depth), {
          maxKeys: 2,
        }),
        required: fc.subarray(["a", "b", "z"]),
        items: inner(depth),
        anyOf: fc.array(inner(depth), { maxLength: 2 }),
        oneOf: fc.array(inner(depth), { maxLength: 2 }),
        allOf: fc.array(inner(depth), { maxLength: 2 }),
        enum: fc.subarray(["x", 1, null]),
        const: fc.constantFrom("x", 1, null),
        $ref: fc.constantFrom("#/$defs/leaf"),
        additionalProperties: fc.boolean(),
        exclusiveMinimum: fc.integer(),
        pattern: fc.constant("^x$"),
        if: fc.constant({}),
        $comment: fc.constant("c"),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
  it("contains only supported keywords, and never throws", () => {
    fc.assert(
      fc.property(schemaOf(3), (inner) => {
        const { parameters } = declared({
          type: "object",
          properties: { p: inner as object },
          $defs: { leaf: { type: "string" } },
        });
        for (const word of wordsIn(parameters)) expect(KNOWN).toContain(word);
      }),
      { numRuns: trialCount(300) },
    );
  });
});

describe("a schema in this protocol", () => {
  const decoded = (parameters: JsonObject) => {
    const request = gemini().server!.decodeRequest(
      {
        model: "m",
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        tools: [{ functionDeclarations: [{ name: "f", parameters }] }],
      },
      "generate",
    );
    return (request.tools[0] as { schema?: object }).schema;
  };
  it("becomes JSON Schema", () => {
    expect(
      decoded({ type: "OBJECT", properties: { a: { type: "STRING", nullable: true } } }),
    ).toEqual({ type: "object", properties: { a: { type: ["string", "null"] } } });
  });
  it("has no type if its type is not specified", () => {
    expect(
      decoded({
        type: "OBJECT",
        properties: {
          a: { type: "TYPE_UNSPECIFIED", description: "d" },
          b: { type: ["TYPE_UNSPECIFIED", "STRING"] },
          c: { type: "TYPE_UNSPECIFIED", nullable: true },
        },
      }),
    ).toEqual({
      type: "object",
      properties: { a: { description: "d" }, b: { type: ["string"] }, c: {} },
    });
  });
});
