import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, describe, it } from "vitest";
import { storeChecks } from "../../../../src/testing/store.ts";
import { postgresStore, SCHEMA } from "./minimal-store.ts";

describe("the contract of a store, on PostgreSQL", () => {
  let db: PGlite;
  beforeAll(async () => {
    db = await PGlite.create();
  }, 240_000);
  afterAll(() => db.close());

  const make = async () => {
    await db.exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${SCHEMA}`);
    // The database survives a gateway.
    return {
      store: postgresStore(db),
      crash: async () => postgresStore(db),
      dispose: async () => {},
    };
  };
  for (const { name, run } of storeChecks(make)) it(name, run);
});
