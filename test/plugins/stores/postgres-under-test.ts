// The store of several gateways on a test server: emptied for each check, so that its schema is
// created once.
import {
  createPostgresStore,
  type PostgresSettings,
  type PostgresStore,
} from "../../../plugins/stores/postgres/store.ts";
import type { FleetUnderTest, StoreUnderTest } from "../../../src/testing/store.ts";
import { startTcpProxy } from "../../kit/database/tcp-proxy.ts";
import { ROLLUP_TABLE_NAMES } from "../../../plugins/stores/postgres/schema/rollup-sql.ts";
import {
  TEXT_TYPES,
  PipelinedConnection,
  type SqlQuery,
} from "../../../plugins/stores/postgres/connection/pipelined-connection.ts";

export const settings = (url: string, more: Partial<PostgresSettings> = {}): PostgresSettings => {
  const address = {
    url,
    tls: "off",
    isPooled: false,
    readFile: async () => Buffer.alloc(0),
  } as const;
  return {
    address,
    ownerAddress: address,
    reportAddress: address,
    schema: "tollgate",
    durability: "flushed",
    leaseMs: 15_000,
    clock: "command",
    migratesOnStart: true,
    roles: {},
    ...more,
  };
};

/** All tables of a ledger. */
export const TABLES = [
  ..."change_counter node meter open_call batch ledger_row terms note checkpoint checkpoint_rollup erased key account price audit job shared chain rollup_position budget_lease lease_recall lease_use".split(
    " ",
  ),
  ...ROLLUP_TABLE_NAMES,
];

/** The tests' own statements. */
export const askAt = (url: string) => {
  const line = new PipelinedConnection(async () => ({ connectionString: url, types: TEXT_TYPES }));
  return {
    ask: async (text: string) => (await line.connect())({ text }),
    question: async (of: SqlQuery) => (await line.connect())(of),
    [Symbol.asyncDispose]: () => line.close(),
  };
};

/** As after a migration. The triggers that protect rows are disabled for it. */
const EMPTIED = (
  s: string,
): string => `DO $$ BEGIN IF to_regclass('${s}.schema_version') IS NOT NULL THEN
  SET LOCAL session_replication_role = replica;
  ${TABLES.map((table) => `DELETE FROM ${s}.${table};`).join(" ")}
  INSERT INTO ${s}.change_counter DEFAULT VALUES; INSERT INTO ${s}.chain DEFAULT VALUES; INSERT INTO ${s}.rollup_position DEFAULT VALUES; END IF; END $$`;

/** For one check. `url`: of a database that no other test uses at that time. */
export async function makePostgres(
  url: string,
  more: Partial<PostgresSettings> = {},
): Promise<
  StoreUnderTest & Required<Pick<StoreUnderTest, "openAnother" | "expireLease" | "createEmpty">>
> {
  const own = askAt(url);
  await own.ask(EMPTIED("tollgate"));
  const made: PostgresStore[] = [];
  const store = (): PostgresStore => {
    const one = createPostgresStore(settings(url, more));
    made.push(one);
    return one;
  };
  const bury = async (which: string) =>
    void (await own.ask(
      `UPDATE tollgate.node SET state = 'dead' WHERE ${which} AND state = 'live'`,
    ));
  return {
    store: store(),
    openAnother: async () => store(),
    expireLease: (instance) => bury(`id = '${instance}'`),
    async createEmpty() {
      await own.ask("DROP SCHEMA IF EXISTS tollgate_other CASCADE");
      const one = createPostgresStore(settings(url, { ...more, schema: "tollgate_other" }));
      made.push(one);
      return one;
    },
    async crash() {
      for (const one of made.splice(0)) await one.close(false);
      await bury("true");
      return store();
    },
    async dispose() {
      for (const one of made) await one.close();
      await own[Symbol.asyncDispose]();
    },
  };
}

/**
 * Three, the first of them with its own link. `pooled`: the address of a pooler in front of the
 * database, to which the link leads.
 */
export async function makeFleet(
  to: { readonly port: number },
  url: string,
  pooled?: string,
): Promise<FleetUnderTest> {
  const road = await startTcpProxy(to);
  const by = (at: string): Partial<PostgresSettings> => {
    const address = { ...settings(at).address, isPooled: pooled !== undefined };
    return { address, ownerAddress: address, reportAddress: address, clock: "database" };
  };
  const { store, openAnother, expireLease, dispose } = await makePostgres(url, by(pooled ?? url));
  const first = createPostgresStore(settings(url, by(road.through(url))));
  return {
    stores: [first, store, await openAnother()],
    expireLease,
    usesOwnClock: true,
    disconnect: async () => road.cut(),
    reconnect: async () => road.mend(),
    async dispose() {
      await first.close();
      await dispose();
      await road[Symbol.asyncDispose]();
    },
  };
}
