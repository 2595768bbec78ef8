// A provider that never reports readiness: neither a start nor a reload waits beyond the timeout.
import { expect, it } from "vitest";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { LifetimeScope } from "../../../src/lib/lifetime-scope.ts";
import { checkReadiness } from "../../../src/runtime/generation/mount-providers.ts";

const never = () => new Promise<void>(() => {});

it.each([
  [false, []],
  [true, [expect.stringContaining("not ready: its readiness check timed out")]],
])(
  "required: %s",
  async (requireReady, told) => {
    const warned: string[] = [];
    const log = { warn: (_: object, message: string) => void warned.push(message) };
    const mounted = {
      id: "providers.p",
      name: "p",
      use: "p",
      requireReady,
    };
    const provider = {
      name: "p",
      plugin: { endpoints: [], checkReady: never },
      origins: new Set(),
      endpoints: [],
      credentials: [{ name: "default", fields: {}, weight: 1, models: undefined, zdr: undefined }],
    };
    const found = await checkReadiness(
      { providers: new Map([["p", mounted]]) } as never,
      new Map([["p", provider]]) as never,
      { log, mask: new SecretMask() } as never,
      new LifetimeScope(),
      (path, words) => ({ ...words, file: "", line: 1, column: 1, path }),
      50,
    );
    expect(found.map(({ message }) => message)).toEqual(told);
    expect(warned).toEqual(requireReady ? [] : ["provider not ready"]);
  },
  2_000,
);
