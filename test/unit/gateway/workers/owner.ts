// A process that owns stores and lends them, one after the other: what the primary is to its workers. `memory`, `postgres`
// (emptied before) or `postgres again`, or a file for sqlite.
import { PGlite } from "@electric-sql/pglite";
import { createHolds } from "../../../../src/gateway/workers/holds.ts";
import { carrying } from "../../../../src/gateway/workers/carrier.ts";
import { lending } from "../../../../src/gateway/workers/lent-store.ts";
import { createLink, type Answers, type Channel } from "../../../../src/gateway/workers/link.ts";
import { makeMemory, onFile } from "../../../plugins/stores/made.ts";
import { postgresStore, SCHEMA } from "../../../plugins/stores/postgres.ts";

let current: Answers = {};
let end: () => unknown = () => {};

let db: PGlite | undefined;
async function make(where: string) {
  if (where === "memory") return makeMemory();
  if (!where.startsWith("postgres")) return onFile(where);
  db ??= await PGlite.create();
  if (where === "postgres")
    await db.exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${SCHEMA}`);
  return { store: postgresStore(db), end: () => {} };
}

const through = (name: string) => [name, (...args: never[]) => current[name]!(...args)] as const;
const reads = ["key", "keys", "accounts", "counted", "entries", "totals", "price", "verify"];

createLink(process as Channel, {
  ...Object.fromEntries([...reads, "apply", "open"].map(through)),
  async own(where: string) {
    await end();
    const made = await make(where);
    end = made.end;
    current = {
      ...lending(made.store, made.store, createHolds(carrying(made.store)).apply),
      open: (owner: { instance: string }) => made.store.open(owner),
    };
  },
});
