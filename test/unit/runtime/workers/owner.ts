// A process that owns stores and lends them one after the other, as the primary does to its
// workers: `memory`, `postgres` (emptied before) or `postgres again`, or a file for sqlite.
import { PGlite } from "@electric-sql/pglite";
import { trackReservations } from "../../../../src/runtime/workers/open-reservations.ts";
import { createBatchForwarder } from "../../../../src/runtime/workers/batch-forwarder.ts";
import { STORE_READ_METHODS } from "../../../../src/runtime/ledger/transferable-store.ts";
import { createStoreHandlers, JOB_REQUESTS } from "../../../../src/runtime/workers/remote-store.ts";
import {
  createIpcLink,
  type IpcHandlers,
  type IpcChannel,
} from "../../../../src/runtime/workers/ipc-link.ts";
import { makeMemory, onFile } from "../../../plugins/stores/stores-under-test.ts";
import { postgresStore, SCHEMA } from "../../../plugins/stores/postgres/minimal-store.ts";

let current: IpcHandlers = {};
let end: () => unknown = () => {};

let db: PGlite | undefined;
async function make(where: string) {
  if (where === "memory") return makeMemory();
  if (!where.startsWith("postgres")) return onFile(where);
  db ??= await PGlite.create();
  if (where === "postgres")
    await db.exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${SCHEMA}`);
  return { store: postgresStore(db), dispose: () => {} };
}

const through = (name: string) => [name, (...args: never[]) => current[name]!(...args)] as const;

createIpcLink(process as IpcChannel, {
  ...Object.fromEntries([...STORE_READ_METHODS, ...JOB_REQUESTS, "apply", "open"].map(through)),
  async own(where: string) {
    await end();
    const made = await make(where);
    end = made.dispose;
    current = {
      ...createStoreHandlers(
        made.store,
        made.store,
        trackReservations(createBatchForwarder(made.store)).apply,
      ),
      open: (owner: { instance: string }) => made.store.open(owner),
    };
  },
});
