import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { createHash } from "node:crypto";
import { digestKey, equalDigests, mintKey, parseKey } from "../../../src/lib/api-key.ts";

describe("a key", () => {
  it("contains its ID, and its checksum is valid", () => {
    for (let i = 0; i < 100; i++) {
      const { id, secret, digest: stored } = mintKey();
      expect(secret).toMatch(/^tg_[0-9A-Za-z]{59}$/);
      expect(parseKey(secret)).toEqual({ id });
      expect(stored).toBe(createHash("sha256").update(secret).digest("hex"));
    }
  });
  it("is unique", () => {
    expect(new Set(Array.from({ length: 200 }, () => mintKey().secret)).size).toBe(200);
  });
  it("with any changed character is invalid", () => {
    const { secret } = mintKey();
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: secret.length - 1 }),
        fc.string({ minLength: 1, maxLength: 1 }),
        (at, c) => {
          const other = secret.slice(0, at) + c + secret.slice(at + 1);
          fc.pre(other !== secret);
          expect(parseKey(other)).toBeUndefined();
        },
      ),
    );
  });
  it("is not parsed from other texts", () => {
    fc.assert(fc.property(fc.string(), (text) => parseKey(text) === undefined));
    expect(parseKey(`${mintKey().secret}x`)).toBeUndefined();
    expect(parseKey(` ${mintKey().secret}`)).toBeUndefined();
  });
});

it("digests compare by content, and lengths may differ", () => {
  expect(equalDigests(digestKey("a"), digestKey("a"))).toBe(true);
  expect(equalDigests(digestKey("a"), digestKey("b"))).toBe(false);
  expect(equalDigests("a", "ab")).toBe(false);
});
