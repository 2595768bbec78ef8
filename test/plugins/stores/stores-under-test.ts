// The two stores for tests: memory, and sqlite in a folder of its own whose owner can be killed.
import type { Store } from "tollgate/plugin";
import { createTestContext } from "../../../src/testing/context.ts";
import type { StoreUnderTest } from "../../../src/testing/store.ts";
import memory from "../../../plugins/stores/memory.ts";
import sqlite from "../../../plugins/stores/sqlite.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Options = { durability?: "power" | "process" | "relaxed"; ballast_mb?: number };

export async function makeMemory(): Promise<StoreUnderTest> {
  const lent = createTestContext({ id: "store" });
  const store = await memory.setup({ keep: 200_000 }, lent.ctx);
  return { store, crash: async () => store, dispose: lent.end };
}

export function makeSqlite(options: Options = {}): Promise<StoreUnderTest & { file: string }> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-ledger-"));
  return onFile(join(folder, "ledger.db"), options, () =>
    rmSync(folder, { recursive: true, force: true }),
  );
}

export async function onFile(
  file: string,
  { durability = "process", ballast_mb = 0 }: Options = {},
  after = () => {},
): Promise<StoreUnderTest & { file: string }> {
  const open = async () => {
    const lent = createTestContext({ id: "store" });
    const store = (await sqlite.setup({ file, durability, ballast_mb }, lent.ctx)) as Store & {
      kill(): Promise<void>;
    };
    return { store, lent };
  };
  let owner = await open();
  let other: Awaited<ReturnType<typeof onFile>> | undefined;
  return {
    store: owner.store,
    file,
    async crash() {
      await owner.store.kill();
      owner = await open();
      return owner.store;
    },
    async createEmpty() {
      other = await onFile(`${file}.other`, { durability, ballast_mb });
      return other.store;
    },
    async dispose() {
      await other?.dispose();
      await owner.lent.end();
      after();
    },
  };
}
