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
