// Tool schemas in their worst forms.
import type { Json, JsonObject } from "tollgate/plugin";

const times = <T>(n: number, one: (i: number) => T): T[] =>
  Array.from({ length: n }, (_, i) => one(i));
const members = (n: number, one: (i: number) => Json): JsonObject =>
  Object.fromEntries(times(n, (i) => [`p${i}`, one(i)]));
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  ...more,
});
const ref = (name: string): JsonObject => ({ $ref: `#/$defs/${name}` });

/** Each level contains the next one twice. */
const doubled = (levels: number, twice: (next: JsonObject) => JsonObject): JsonObject =>
  object(
    { a: ref("l0") },
    {
      $defs: Object.fromEntries(
        times(levels, (i) => [
          `l${i}`,
          i === levels - 1 ? { type: "string" } : twice(ref(`l${i + 1}`)),
        ]),
      ),
    },
  );

export const schemas: { readonly [name: string]: (n: number) => JsonObject } = {
  wide: (n) => object(members(n, () => ({ type: "string", description: "d" }))),
  "wide, and all of it required": (n) =>
    object(
      members(n, () => ({})),
      { required: times(n, (i) => `p${i}`) },
    ),
  "deep, on and on": (n) =>
    object(
      members(Math.ceil(n / 25), () =>
        times(25, (i) => i).reduce<JsonObject>((inner) => object({ a: inner }), { type: "string" }),
      ),
    ),
  "of doubled references": (n) => doubled(Math.min(n, 40), (next) => ({ allOf: [next, next] })),
  "of doubled members": (n) => doubled(Math.min(n, 40), (next) => object({ a: next, b: next })),
  "of doubled choices": (n) => doubled(Math.min(n, 40), (next) => ({ anyOf: [next, next] })),
  "of many references to one wide part": (n) =>
    object(
      members(n, () => ref("wide")),
      {
        $defs: { wide: object(members(n, () => ({ type: "string" }))) },
      },
    ),
  "of many references to one long list": (n) =>
    object(
      members(n, () => ref("list")),
      {
        $defs: { list: { type: "string", enum: times(n, (i) => `v${i}`) } },
      },
    ),
  "of many references to one long text": (n) =>
    object(
      members(n, () => ref("text")),
      {
        $defs: { text: { type: "string", description: "d".repeat(20 * n) } },
      },
    ),
  "of many references to a part of unknown words": (n) =>
    object(
      members(n, () => ref("odd")),
      {
        $defs: { odd: object({ a: Object.fromEntries(times(n, (i) => [`x-${i}`, 1])) }) },
      },
    ),
  "a chain of references": (n) =>
    object(
      { a: ref("l0") },
      {
        $defs: Object.fromEntries(
          times(n, (i) => [`l${i}`, i === n - 1 ? { type: "string" } : ref(`l${i + 1}`)]),
        ),
      },
    ),
  "a chain of references that add up": (n) =>
    object(
      { a: ref("l0") },
      {
        $defs: Object.fromEntries(
          times(n, (i) => [
            `l${i}`,
            { allOf: [ref(`l${Math.min(i + 1, n)}`)], properties: { [`m${i}`]: {} } },
          ]).concat([[`l${n}`, { type: "object" }]] as never),
        ),
      },
    ),
  "many parts added up": (n) =>
    object({ a: { allOf: times(n, (i) => object({ [`m${i}`]: {} }, { required: [`m${i}`] })) } }),
  "one reference under many names": (n) =>
    object(
      members(n, (i) => ({ $ref: `#${"/".repeat(i % 50)}/$defs/wide` })),
      {
        $defs: { wide: object(members(n, () => ({ type: "string" }))) },
      },
    ),
  "a circle": (n) =>
    object(
      { a: ref("l0") },
      {
        $defs: Object.fromEntries(
          times(n, (i) => [`l${i}`, object({ a: ref(`l${(i + 1) % n}`) })]),
        ),
      },
    ),
  "many types": (n) => object({ a: { type: times(n, () => "string") } }),
  "a long list": (n) => object({ a: { enum: times(n, (i) => `v${i}`) } }),
  "a reference that is no address": () => object({ a: { $ref: "#/%zz/%" } }),
};
