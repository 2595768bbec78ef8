// The hash of arguments is an HMAC, whatever the order of their members.
import fc from "fast-check";
import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { ArgumentsHash } from "../../../../plugins/frontends/mcp/arguments-hash.ts";
import { canonicalJson } from "../../../../plugins/frontends/mcp/json-rpc.ts";

it("equals the HMAC of Node, and does not depend on the order of members", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 64 }),
      fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
      (key, values) => {
        const hash = new ArgumentsHash(key);
        const expected = createHmac("sha256", key).update(canonicalJson(values)).digest("hex");
        expect(hash.of(values as never)).toBe(expected.slice(0, 32));
        const reversed = Object.fromEntries(Object.entries(values).toReversed());
        expect(hash.of(reversed as never)).toBe(expected.slice(0, 32));
      },
    ),
  );
});

it("canonical JSON has the names of each object in the order of a sorted object", () => {
  const sorted = (_: string, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  const name = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("__proto__", "10", "9", "09", "-1", "1e3", "4294967294", "4294967295"),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue(),
      fc.array(tie("value")),
      fc.array(fc.tuple(name, fc.option(tie("value"), { nil: undefined }))).map(Object.fromEntries),
    ),
  }));
  fc.assert(
    fc.property(value, (one) => {
      fc.pre(one !== undefined);
      expect(canonicalJson(one)).toBe(JSON.stringify(one, sorted));
    }),
  );
});
