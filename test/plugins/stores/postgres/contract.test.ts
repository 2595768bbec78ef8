// The store of several gateways, on a real server: alone, three of them with one connection that
// can be cut, and behind a pooler that assigns each transaction another connection.
import { afterAll, beforeAll, describe, it } from "vitest";
import { fleetChecks, storeChecks } from "../../../../src/testing/store.ts";
import {
  hasPgBouncer,
  hasPostgres,
  startPgBouncer,
  startPostgres,
  type PgBouncer,
  type Postgres,
} from "../../../kit/database/postgres.ts";
import { makeFleet, makePostgres } from "../postgres-under-test.ts";

describe.skipIf(!hasPostgres())("the postgres store", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  describe("alone", () => {
    for (const { name, run } of storeChecks(() => makePostgres(url))) it(name, run);
  });

  describe("three of them", () => {
    for (const { name, run } of fleetChecks(() => makeFleet(server, url))) it(name, run);
  });

  describe.skipIf(!hasPgBouncer())("behind PgBouncer in transaction mode", () => {
    let bouncer: PgBouncer;
    beforeAll(async () => {
      bouncer = await startPgBouncer(server);
    });
    afterAll(() => bouncer?.[Symbol.asyncDispose]());

    for (const { name, run } of fleetChecks(() =>
      makeFleet({ port: Number(new URL(bouncer.through(url)).port) }, url, bouncer.through(url)),
    ))
      it(name, run);
  });
});
