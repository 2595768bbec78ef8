import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FORMAT_CHECKS, findSchemaFlaw, getValidator } from "../../../src/config/schema-dialect.ts";

describe("formats", () => {
  it.each([
    ["uri", ["https://a.test/x", "urn:x:y"], ["a.test", "", "//x"]],
    [
      "date",
      ["2027-02-28", "2028-02-29"],
      ["2027-02-29", "2027-2-1", "2027-13-01", "27-01-01", ""],
    ],
    [
      "date-time",
      ["2027-01-01T10:00:00Z", "2027-01-01 10:00:00.5+01:00"],
      ["2027-01-01", "2027-01-01T10:00Z", "x"],
    ],
    ["email", ["a@b"], ["a", "a@", "a b@c"]],
    ["hostname", ["a", "a-b.test", "1.2"], ["-a", "a_b", "a..b", "", `${"x".repeat(64)}.test`]],
    ["ipv4", ["127.0.0.1"], ["127.0.0", "::1"]],
    ["ipv6", ["::1"], ["127.0.0.1", ":"]],
    ["regex", ["^a+$"], ["(", "\\k<x>("]],
  ] as const)("%s", (format, good, bad) => {
    expect(good.filter((text) => !FORMAT_CHECKS[format](text))).toEqual([]);
    expect(bad.filter((text) => FORMAT_CHECKS[format](text))).toEqual([]);
  });
  it("check any text quickly", () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(..."a.-@:/0"), maxLength: 500 }),
    );
    fc.assert(
      fc.property(text, (t) =>
        Object.values(FORMAT_CHECKS).every((test) => typeof test(t) === "boolean"),
      ),
    );
  });
});

const schema = {
  type: "object",
  additionalProperties: false,
  definitions: { key: { type: "string", "x-secret": true } },
  properties: {
    a: { type: "object", default: {}, properties: { n: { type: "number", default: 1 } } },
    keys: { type: "array", items: { $ref: "#/definitions/key" } },
    by: {
      type: "object",
      additionalProperties: { anyOf: [{ type: "number" }, { $ref: "#/definitions/key" }] },
    },
  },
} as const;

describe("a validator", () => {
  it("applies defaults to a copy", () => {
    const given = Object.freeze({ keys: Object.freeze(["x"]) });
    const first = getValidator(schema)(given);
    expect(first.value).toEqual({ keys: ["x"], a: { n: 1 } });
    (first.value as any).a.n = 2;
    expect(getValidator(schema)({}).value).toEqual({ a: { n: 1 } });
  });
  it("reports secret locations, through references, lists, maps, and alternatives", () => {
    const { secrets } = getValidator(schema)({ keys: ["x", "y"], by: { one: 1, two: "z" } });
    expect([...secrets].sort()).toEqual(["/by/two", "/keys/0", "/keys/1"]);
  });
  it("reports all errors, and is compiled once", () => {
    expect(getValidator(schema)({ b: 1, c: 2, keys: 3 }).errors).toHaveLength(3);
    expect(getValidator(schema)).toBe(getValidator(schema));
  });
});

it.each([
  [{ type: "object", properties: { a: { type: "text" } } }, /type/],
  [{ type: "object", required: "a" }, /required/],
  [{ type: "object", proprties: {} }, /proprties/],
  [{ type: "object", properties: { a: { type: "string", format: "colour" } } }, /colour/],
  [{ type: "object", properties: { a: { $ref: "#/definitions/none" } } }, /none/],
  [
    {
      type: "object",
      properties: { a: { anyOf: [{ type: "object", properties: { b: { default: 1 } } }] } },
    },
    /default is ignored/,
  ],
])("%j is not a supported schema", (bad, why) => expect(findSchemaFlaw(bad)).toMatch(why));
it("a supported schema has no errors", () => expect(findSchemaFlaw(schema)).toBeUndefined());

it("a schema can state the first version that has an option", () => {
  const schema = (since: unknown) =>
    ({
      type: "object",
      properties: { region: { type: "string", "x-since": since } },
    }) as const;
  expect(getValidator(schema("0.2.0"))({ region: "eu" }).errors).toEqual([]);
  expect(() => getValidator(schema(2))).toThrow(/x-since/);
});
