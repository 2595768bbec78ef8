// Records as JSON that keeps big integers.
import fc from "fast-check";
import { expect, it } from "vitest";
import { fromJson, toJson } from "tollgate/store";

const part = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc.bigInt(),
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie("any"), { maxKeys: 4 }),
  ),
})).any;

it("is decoded to the same value, wherever its big integers are", () => {
  fc.assert(
    fc.property(part, (value) => {
      const before = structuredClone(value);
      const text = toJson(value);
      expect(fromJson(text)).toEqual(value);
      // Writing does not change it.
      expect(value).toEqual(before);
    }),
  );
});

it("equals JSON's result if it contains no big integer", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(toJson(value)).toBe(JSON.stringify(value));
    }),
  );
  // `toJSON` is a name without special meaning.
  expect(fromJson(toJson({ toJSON: "x", a: 1n }))).toEqual({ toJSON: "x", a: 1n });
  const dated = { at: new Date(0), nothing: undefined, list: [undefined, 1n] };
  expect(toJson(dated)).toBe('{"at":"1970-01-01T00:00:00.000Z","list":[null,{"~bigint":"1"}]}');
});
