// Services of a process: a given one replaces its default, and those of the store are given together.
import { describe, expect, it } from "vitest";
import { LifetimeScope, SharedResources } from "../../../src/lib/lifetime-scope.ts";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { createInMemoryModelLists } from "../../../src/catalog/model-lists.ts";
import { createServices, type Services } from "../../../src/runtime/services.ts";
import { createPluginPeers } from "../../../src/runtime/services/peer-gateways.ts";

const CONFIG = {
  overload: { maxConcurrent: 1, maxQueueWaitMs: 1 },
  bounds: { inFlightBytes: 1 },
  proxy: undefined,
};
const idle = () => {
  throw new Error("It is not running.");
};
const GIVEN = {
  log: { info() {} } as never,
  mask: new SecretMask(),
  modelLists: createInMemoryModelLists(),
  stateDir: "/tmp",
  env: {},
  shared: new SharedResources(),
  pluginPeers: createPluginPeers(),
  localEndpoint: idle,
  stats: idle,
};

/** Counts the objects that a scope has to close. */
class CountingScope extends LifetimeScope {
  owned = 0;
  override defer(close: () => unknown): void {
    this.owned++;
    super.defer(close);
  }
}

describe("a service that is given", () => {
  it("is used, and no default of it is created", async () => {
    await using scope = new CountingScope();
    const defaults = createServices(CONFIG, scope, GIVEN);
    expect(scope.owned).toBeGreaterThan(3);
    await using other = new CountingScope();
    const services = createServices(CONFIG, other, { ...GIVEN, ...defaults });
    expect(other.owned).toBe(0);
    for (const name of Object.keys(defaults) as (keyof typeof defaults)[])
      expect([name, services[name]]).toEqual([name, defaults[name]]);
  });

  it("of the store comes with all the others of the store", () => {
    const store = {} as Services["store"];
    const types = () => {
      // @ts-expect-error `ledgerQueue`, `keyCache`, and others are missing.
      createServices(CONFIG, new LifetimeScope(), { ...GIVEN, store });
    };
    expect(types).toBeTypeOf("function");
  });
});
