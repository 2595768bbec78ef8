// The expansion of references is counted without creating it: a schema of a few bytes that expands
// to millions is rejected by its size.
import { expect, it } from "vitest";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { toOpenApiSubset } from "../../../src/protocols/gemini/client/openapi-schema.ts";
import type { JsonObject } from "tollgate/plugin";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";

const ref = (i: number) => ({ $ref: `#/$defs/l${i}` });
/** Parsed like a client's text: no two parts are one object. */
const bomb = (levels: number, twice: (i: number) => JsonObject): JsonObject => {
  const $defs: Record<string, JsonObject> = { l0: { type: "string" } };
  for (let i = 1; i <= levels; i++) $defs[`l${i}`] = twice(i - 1);
  const whole = { type: "object", properties: { a: ref(levels) }, $defs };
  return JSON.parse(JSON.stringify(whole)) as JsonObject;
};
const BOMBS: { readonly [name: string]: JsonObject } = {
  members: bomb(25, (i) => ({ type: "object", properties: { a: ref(i), b: ref(i) } })),
  choices: bomb(25, (i) => ({ anyOf: [ref(i), ref(i)] })),
  lists: bomb(25, (i) => ({
    type: "object",
    properties: {
      a: { type: "array", items: ref(i) },
      b: { type: "array", items: { anyOf: [ref(i), ref(i)] } },
    },
  })),
  sums: bomb(25, (i) => ({
    type: "object",
    properties: { a: { allOf: [ref(i), ref(i)] }, b: ref(i) },
  })),
};
const purse = () => ({ remaining: BOUNDS.schemaExpansion.max });

it.each(Object.entries(BOMBS))(
  "of doubled %s is rejected by the size of its bytes",
  (_name, schema) => {
    const refused = () =>
      expect(() => toOpenApiSubset(schema, "tools.f", purse(), () => {})).toThrow();
    const times = Array.from({ length: 20 }, () => {
      const before = ownCpuMs();
      refused();
      return ownCpuMs() - before;
    });
    // Expanding it takes about 80 ms. The fastest one contains no garbage collection.
    expect(Math.min(...times)).toBeLessThan(20);
  },
);

it("of doubled sums with a small result has that result", () => {
  const schema = bomb(20, (i) => ({ allOf: [ref(i), ref(i)] }));
  expect(toOpenApiSubset(schema, "tools.f", purse(), () => {})).toEqual({
    type: "object",
    properties: { a: { type: "string" } },
  });
});

it("is expanded in the same way wherever a reference leads", () => {
  const point = { type: "object", properties: { x: { type: "number" } }, required: ["x"] };
  const schema = JSON.parse(
    JSON.stringify({
      type: "object",
      properties: { a: { $ref: "#/$defs/p" }, b: { type: "array", items: { $ref: "#/$defs/p" } } },
      $defs: { p: point },
    }),
  ) as JsonObject;
  expect(toOpenApiSubset(schema, "tools.f", purse(), () => {})).toEqual({
    type: "object",
    properties: { a: point, b: { type: "array", items: point } },
  });
});

it("with an overlong reference is rejected before it is parsed", () => {
  const schema = { type: "object", properties: { a: { $ref: `#/${"~1%41/".repeat(1e6)}` } } };
  const before = ownCpuMs();
  expect(() => toOpenApiSubset(schema, "tools.f", purse(), () => {})).toThrow(/the reference #/);
  expect(ownCpuMs() - before).toBeLessThan(500);
});
