// Assembles the store from its parts.
import { setTimeout as sleep } from "node:timers/promises";
import { fail, getFault, type Commands, type LedgerTransfer, type Store } from "tollgate/plugin";
import { openImport, isImporting, failUnfinishedImport } from "./transfer/import.ts";
import { createAuditLog } from "./audit/audit-log.ts";
import { createChainCommands, createSchemaCommands } from "./store-commands.ts";
import { connectionConfig, type DatabaseAddress } from "./connection/connection-config.ts";
import { createJobTable } from "./membership/job-table.ts";
import { createThresholdOutbox, createSharedValues } from "./membership/shared-values.ts";
import { migrate, readSchemaStatus, type DatabaseRoles } from "./schema/migrations.ts";
import { createLedgerMaintenance } from "./retention/ledger-maintenance.ts";
import { openExport } from "./transfer/export.ts";
import { PipelinedConnection, type RunSql } from "./connection/pipelined-connection.ts";
import { createReadPool } from "./connection/read-pool.ts";
import { createKeyCache } from "./membership/key-cache.ts";
import { assignNumbers, createStoreReads } from "./read/store-reads.ts";
import { isUnavailable, failUnreachable } from "./connection/errors.ts";
import { createPeriodicMaintenance } from "./membership/periodic-maintenance.ts";
import { verifyLedger } from "./audit/verify.ts";
import { createWriter } from "./writer.ts";
import type { WriterSettings } from "./writer-interface.ts";

/** Settings of the store, derived from its options. */
export interface PostgresSettings extends Omit<WriterSettings, "usesPreparedStatements"> {
  readonly address: DatabaseAddress;
  /** Connection of the schema owner, if it differs from the runtime role. */
  readonly ownerAddress: DatabaseAddress;
  /** Connection for reports. It can be a replica. */
  readonly reportAddress: DatabaseAddress;
  readonly migratesOnStart: boolean;
  readonly roles: DatabaseRoles;
}

export type PostgresStore = Store &
  Commands & {
    /**
     * @param goodbye If false, everything is left as after a crash. For tests of recovery.
     */
    close(goodbye?: boolean): Promise<void>;
  };

/**
 * Maximum wait for the database at startup, in milliseconds. After that, opening fails, and the
 * host retries indefinitely.
 */
const START_TIMEOUT_MS = 2_000;
/** Maximum run time of a report, in milliseconds. */
const REPORT_TIMEOUT_MS = 30_000;
const STATEMENT_TIMEOUT_MS = 2_000;
/** Maximum run time of a step of ledger maintenance, in milliseconds. */
const LIFECYCLE_TIMEOUT_MS = 600_000;

export function createPostgresStore(settings: PostgresSettings): PostgresStore {
  const { schema, address, leaseMs } = settings;
  const connection = new PipelinedConnection(() =>
    connectionConfig(address, { statementMs: STATEMENT_TIMEOUT_MS }),
  );
  const writer = createWriter(connection, {
    ...settings,
    usesPreparedStatements: !address.isPooled,
  });
  const clientPool = createReadPool(
    () =>
      connectionConfig(address, { statementMs: REPORT_TIMEOUT_MS, silenceMs: REPORT_TIMEOUT_MS }),
    2,
  );
  const reports = createReadPool(
    () =>
      connectionConfig(settings.reportAddress, {
        statementMs: REPORT_TIMEOUT_MS,
        silenceMs: REPORT_TIMEOUT_MS,
      }),
    2,
    settings.reportAddress.isPooled,
  );
  const periodicMaintenance = createPeriodicMaintenance(clientPool.sql, schema);

  const asOwner = <T>(work: (sql: RunSql) => Promise<T>) =>
    withOwnConnection(settings.ownerAddress, 60_000, work);

  const ensureSchemaOnce = () => ensureSchema(settings, clientPool.sql, asOwner);
  async function checkReady(): Promise<void> {
    await ensureSchemaOnce();
    if (await isImporting(clientPool.sql, schema)) failUnfinishedImport();
  }
  const reads = createStoreReads(
    clientPool.sql,
    reports.sql,
    schema,
    (at) => writer.databaseNow(at),
    () => assignNumbers(clientPool.sql, schema),
  );
  const keys = createKeyCache(reads.findKey, writer, settings.offline);
  const store: PostgresStore = {
    lease: { durationMs: leaseMs, heartbeatMs: Math.floor(leaseMs / 3) },
    async open(owner, onEvent = () => {}) {
      const hear = keys.wrapListener(onEvent);
      for (const until = performance.now() + START_TIMEOUT_MS; ;)
        try {
          await checkReady();
          const opened = await writer.open(owner, hear);
          periodicMaintenance.start();
          return opened;
        } catch (error) {
          if (!isUnavailable(error) && getFault(error)?.code !== "store_unreachable") throw error;
          if (performance.now() > until) failUnreachable(error);
          await sleep(500);
        }
    },
    async apply(batch) {
      const verdicts = await writer.apply(batch);
      keys.onBatchWritten(batch);
      periodicMaintenance.onRowsWritten();
      return verdicts;
    },
    ...reads,
    findKey: keys.findKey,
    audit: createAuditLog(writer, clientPool.sql, schema),
    jobs: createJobTable(clientPool.sql, schema, settings.clock === "command"),
    thresholds: createThresholdOutbox(clientPool.sql, writer.sql, schema),
    getOrCreateShared: createSharedValues(clientPool.sql, schema),
    // Always verify the primary. A replica may lag behind or be another database.
    verify: () => verifyLedger(clientPool.sql, schema, () => assignNumbers(clientPool.sql, schema)),
    maintenance: createLedgerMaintenance(
      (work) => withOwnConnection(address, LIFECYCLE_TIMEOUT_MS, work),
      clientPool.sql,
      schema,
      reads.readSize,
      (sql) => assignNumbers(sql, schema),
      writer,
    ),
    transfer: createTransfer(settings, ensureSchemaOnce),
    commands: {
      ...createSchemaCommands(schema, settings.roles, asOwner),
      ...createChainCommands(clientPool.sql, schema, () => assignNumbers(clientPool.sql, schema)),
    },
    async close(goodbye = true) {
      periodicMaintenance.stop();
      await writer.close(goodbye);
      await Promise.all([clientPool.close(), reports.close()]);
    },
  };
  return store;
}

/** Ensures that the schema has the version that this gateway needs. */
async function ensureSchema(
  { schema, migratesOnStart, roles }: PostgresSettings,
  sql: RunSql,
  asOwner: <T>(work: (sql: RunSql) => Promise<T>) => Promise<T>,
): Promise<void> {
  const { version, expand, latest } = await readSchemaStatus(sql, schema);
  if (expand.length === 0) return;
  if (migratesOnStart) await asOwner((owner) => migrate(owner, schema, roles));
  else
    fail(
      "invalid",
      `The database has schema version ${version}, but this gateway requires version ${latest}. Run tollgate store migrate.`,
      { code: "older_schema" },
    );
}

/** Creates a separate connection for long work. */
const createConnection = (to: DatabaseAddress, statementMs: number): PipelinedConnection =>
  new PipelinedConnection(() =>
    connectionConfig(to, { statementMs, silenceMs: statementMs + 10_000 }),
  );

async function withOwnConnection<T>(
  to: DatabaseAddress,
  statementMs: number,
  work: (sql: RunSql) => Promise<T>,
): Promise<T> {
  const own = createConnection(to, statementMs);
  try {
    return await work(await own.connect());
  } catch (error) {
    if (isUnavailable(error)) failUnreachable(error);
    throw error;
  } finally {
    await own.close();
  }
}

/**
 * @param formed Resolves when the schema exists.
 */
const createTransfer = (
  { address, ownerAddress, schema }: PostgresSettings,
  formed: () => Promise<void>,
): LedgerTransfer => ({
  async openExport() {
    const line = createConnection(address, LIFECYCLE_TIMEOUT_MS);
    return openExport(await line.connect(), schema, () => line.close());
  },
  async openImport() {
    await formed();
    const line = createConnection(ownerAddress, LIFECYCLE_TIMEOUT_MS);
    return openImport(await line.connect(), schema, () => line.close());
  },
});
