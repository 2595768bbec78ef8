// Encrypted data is read back with its key and context only, and never after a change.
import fc from "fast-check";
import { expect, it } from "vitest";
import { decrypt, encrypt } from "tollgate/plugin";
import { trialCount } from "../../kit/law-effort.ts";

const key = fc.uint8Array({ minLength: 32, maxLength: 32 });

it("law: data is read back with the same key and context, and with no other", () => {
  fc.assert(
    fc.property(
      key,
      key,
      fc.uint8Array({ maxLength: 200 }),
      fc.string(),
      fc.string(),
      (own, other, data, context, foreign) => {
        const encrypted = encrypt(own, data, context);
        expect(decrypt(own, encrypted, context)).toEqual(Buffer.from(data));
        fc.pre(context !== foreign && Buffer.compare(own, other) !== 0);
        expect(decrypt(own, encrypted, foreign)).toBeUndefined();
        expect(decrypt(other, encrypted, context)).toBeUndefined();
      },
    ),
    { numRuns: trialCount(200) },
  );
});

it("law: data that was changed or cut is not read", () => {
  fc.assert(
    fc.property(
      key,
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(),
      fc.nat(7),
      (own, data, at, bit) => {
        const encrypted = encrypt(own, data);
        const changed = Buffer.from(encrypted);
        changed[at % changed.length]! ^= 1 << bit;
        expect(decrypt(own, changed)).toBeUndefined();
        expect(decrypt(own, encrypted.subarray(0, at % encrypted.length))).toBeUndefined();
      },
    ),
    { numRuns: trialCount(200) },
  );
});
