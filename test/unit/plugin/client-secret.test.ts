// Client secrets: what they contain, who can read them, and when the middleware `auth` accepts them.
import { expect, it, onTestFinished } from "vitest";
import { createClientSecret, getFault, openClientSecret, type KeyRecord } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { createKeyCache } from "../../../src/runtime/services/key-cache.ts";

const DIGEST = digestKey("key");
const ctx = { deriveSecret: () => Buffer.alloc(32, 1) };
const head = (more: object = {}) =>
  ({
    identity: { id: "one", digest: DIGEST },
    frontend: "realtime",
    privacy: "off",
    ...more,
  }) as never;
const data = { model: "vendor/voice", instructions: "Be kind." };
const EXPIRES = 1_900_000_000_000;
const create = (more: object = {}) =>
  createClientSecret(ctx, head(), { expiresAt: EXPIRES, data, ...more });
const faultOf = (run: () => unknown) => {
  try {
    run();
  } catch (problem) {
    return getFault(problem)?.code;
  }
  return undefined;
};

it("a client secret contains the key's hash, its data, and the privacy of its request", () => {
  const secret = createClientSecret(ctx, head({ privacy: "required" }), {
    expiresAt: EXPIRES,
    data,
  });
  expect(openClientSecret(ctx, head(), secret)).toEqual({
    digest: DIGEST,
    privacy: "required",
    clientSecret: { frontend: "realtime", expiresAt: EXPIRES, data },
  });
});

it("only a gateway with the same secret can read it", () => {
  const other = { deriveSecret: () => Buffer.alloc(32, 2) };
  expect(openClientSecret(other, head(), create())).toBeUndefined();
  expect(Buffer.from(create(), "base64url").includes("vendor")).toBe(false);
});

it("it is unreadable if anything in it is changed, or missing", () => {
  const secret = create();
  const bytes = Buffer.from(secret.slice(3), "base64url");
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    expect(openClientSecret(ctx, head(), `ek_${changed.toString("base64url")}`)).toBeUndefined();
    const cut = bytes.subarray(0, at).toString("base64url");
    expect(openClientSecret(ctx, head(), `ek_${cut}`)).toBeUndefined();
  }
  for (const text of ["", "ek_", "key", `ek_${"A".repeat(100_000)}`])
    expect(openClientSecret(ctx, head(), text)).toBeUndefined();
});

it("another frontend rejects it, and only a key can create it", () => {
  expect(faultOf(() => openClientSecret(ctx, head({ frontend: "other" }), create()))).toBe(
    "client_secret_not_accepted",
  );
  expect(
    faultOf(() =>
      createClientSecret(ctx, head({ identity: { id: "anonymous" } }), { expiresAt: 1, data }),
    ),
  ).toBe("client_secret_needs_key");
});

it("a key is not found by a secret that is its hash", async () => {
  const record: KeyRecord = { id: "one", digest: DIGEST, created: 0 };
  const keys = createKeyCache({
    findKey: async (digest) => (digest === DIGEST ? record : undefined),
  });
  expect(await keys.find(DIGEST)).toBeUndefined();
  expect(await keys.findByDigest(DIGEST)).toBe(record);
  expect(await keys.find(DIGEST)).toBeUndefined();
  // Cached, so that nothing has to be awaited.
  expect(keys.findByDigest(DIGEST)).toBe(record);
  keys.invalidate();
  expect(keys.findByDigest(DIGEST)).toBeInstanceOf(Promise);
  expect(await keys.findByDigest(digestKey("other"))).toBeUndefined();
});

it("the same purpose gives all plugins the same secret", () => {
  const lent = createTestContext();
  onTestFinished(() => lent.end());
  const secret = createClientSecret(lent.ctx, head(), { expiresAt: EXPIRES, data });
  expect(openClientSecret(lent.ctx, head(), secret)).toBeDefined();
});
