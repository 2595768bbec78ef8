import { expect, it } from "vitest";
import type { Context } from "tollgate/plugin";
import { isKeyValid } from "../../../plugins/frontends/jobs/key-validity.ts";

const record = {} as never;
const contextOf = (valid: boolean, isStored: boolean) => ({
  keys: {
    findByDigest: () => (valid ? record : undefined),
    read: async () => (isStored ? record : undefined),
  } as unknown as Context["keys"],
});

it.each([
  { name: "a valid key", digest: "d", valid: true, isStored: true, expected: true },
  { name: "a revoked key", digest: "d", valid: false, isStored: true, expected: false },
  { name: "a key of gateway.yaml", digest: "d", valid: false, isStored: false, expected: true },
  {
    name: "a client without a key",
    digest: undefined,
    valid: false,
    isStored: false,
    expected: true,
  },
])("$name", async ({ digest, valid, isStored, expected }) => {
  expect(await isKeyValid(contextOf(valid, isStored), digest)).toBe(expected);
});
