import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Definition } from "../plugin/define.ts";
import type { Store } from "../plugin/store/store.ts";
import { withDefaults } from "./conformance/definition.ts";
import { createTestContext, type TestContext } from "./context.ts";
import type { StoreUnderTest } from "./store/fixtures.ts";

/**
 * Creates the argument of the store checks, for a store that keeps all its data in
 * `ctx.stateDir()`. Each call uses a new folder. A store that is killed is created again from the
 * files in its folder.
 */
export const createStoreFactory =
  (
    definition: Definition,
    options: Readonly<Record<string, unknown>> = {},
  ): (() => Promise<StoreUnderTest>) =>
  async () => {
    const stateDir = mkdtempSync(join(tmpdir(), "tollgate-store-"));
    const lent: TestContext[] = [];
    const made = async (): Promise<Store> => {
      const one = createTestContext({ id: "store", stateDir });
      lent.push(one);
      const setup = definition.setup as (options: unknown, ctx: unknown) => Store | Promise<Store>;
      return setup(withDefaults(definition.options, options), one.ctx);
    };
    return {
      store: await made(),
      crash: made,
      async dispose() {
        for (const one of lent) await one.end();
        rmSync(stateDir, { recursive: true, force: true });
      },
    };
  };
