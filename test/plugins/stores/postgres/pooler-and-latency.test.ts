// The store's checks again with a realistic database connection: behind a pooler that assigns each
// transaction another connection, and over a network.
import { afterAll, beforeAll, describe, it } from "vitest";
import { storeChecks } from "../../../../src/testing/store.ts";
import {
  hasPgBouncer,
  hasPostgres,
  startPgBouncer,
  startPostgres,
  type PgBouncer,
  type Postgres,
} from "../../../kit/database/postgres.ts";
import { startTcpProxy, type TcpProxy } from "../../../kit/database/tcp-proxy.ts";
import { makePostgres, settings } from "../postgres-under-test.ts";

/** In one direction: the round trip is like between two zones of a cloud. */
const TRIP_MS = 0.3;

describe.skipIf(!hasPostgres())("the postgres store", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  const made = (at: string, pooled: boolean) => {
    const address = { ...settings(at).address, isPooled: pooled };
    return makePostgres(url, { address, ownerAddress: address, reportAddress: address });
  };

  describe.skipIf(!hasPgBouncer())("behind PgBouncer in transaction mode", () => {
    let bouncer: PgBouncer;
    beforeAll(async () => {
      bouncer = await startPgBouncer(server);
    });
    afterAll(() => bouncer?.[Symbol.asyncDispose]());

    for (const { name, run } of storeChecks(() => made(bouncer.through(url), true))) it(name, run);
  });

  describe("over a network", () => {
    let road: TcpProxy;
    beforeAll(async () => {
      road = await startTcpProxy({ port: Number(new URL(url).port) });
      road.delay(TRIP_MS);
    });
    afterAll(() => road?.[Symbol.asyncDispose]());

    for (const { name, run } of storeChecks(() => made(road.through(url), false))) it(name, run);
  });
});
