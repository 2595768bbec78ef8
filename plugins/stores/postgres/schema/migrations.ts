// The versions of the schema. A new version is first expanded: objects are added that can coexist
// with the objects of older gateways. When no older gateway is alive, the version is contracted:
// objects that only older gateways used are removed.
import { fail } from "tollgate/plugin";
import { awaitAll } from "../connection/await-all.ts";
import { sequencerSql } from "./sequencer.ts";
import { erasureSql } from "./erased-hashes.ts";
import { applyBatchSql } from "./apply-batch.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { compactionSql } from "./compaction-sql.ts";
import { budgetLeaseSql } from "./budget-lease-sql.ts";
import { meterSweepSql } from "./meter-sweep-sql.ts";
import { ROLLUP_TABLE_NAMES, updateRollupsSql } from "./rollup-sql.ts";
import { tablesSql } from "./tables.ts";
import { isSchemaConflict } from "../connection/errors.ts";

export interface Migration {
  readonly version: number;
  readonly description: string;
  /** Oldest gateway version that can still run on this schema version. */
  readonly minVersion: number;
  expand(schema: string): string;
  contract?(s: string): string;
}

/** Migrations in order. Never change a released migration. */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    description:
      "tables, admission function, sequencer, daily rollups, rollups of pruned rows, budget leases",
    minVersion: 1,
    expand: (schema) =>
      tablesSql(schema) +
      applyBatchSql(schema) +
      sequencerSql(schema) +
      updateRollupsSql(schema) +
      compactionSql(schema) +
      erasureSql(schema) +
      budgetLeaseSql(schema) +
      meterSweepSql(schema),
  },
];

/** The newest version that this package supports. */
export const LATEST_VERSION = MIGRATIONS.at(-1)!.version;

/** Roles that receive privileges, in addition to the owner of the schema. */
export interface DatabaseRoles {
  readonly run?: string | undefined;
  readonly read?: string | undefined;
}

/** The version of the database, and the pending migrations. */
export interface SchemaStatus {
  /** Current version. 0 if there is no schema. */
  readonly version: number;
  readonly latest: number;
  readonly expand: readonly number[];
  readonly contract: readonly number[];
  /** Number of live gateways of an older version. Contractions run only when it is 0. */
  readonly olderGateways: number;
}

/** Reads the schema status. Does not change the database. */
export async function readSchemaStatus(sql: RunSql, schema: string): Promise<SchemaStatus> {
  const [there] = await sql({
    text: "SELECT to_regclass($1)::text AS schema_version, current_setting('server_encoding') AS encoding",
    values: [`${schema}.schema_version`],
  });
  // Meters are locked in byte order, so the order depends on the encoding. SQL_ASCII stores texts
  // as they are sent, in UTF-8.
  if (!["UTF8", "SQL_ASCII"].includes(there?.["encoding"] ?? ""))
    fail(
      "invalid",
      `The database uses the encoding ${there?.["encoding"]}, which does not support all characters that calls may contain. Create another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`,
      { code: "not_utf8" },
    );
  if (there?.["schema_version"] == null)
    return {
      version: 0,
      latest: LATEST_VERSION,
      expand: MIGRATIONS.map(({ version }) => version),
      contract: [],
      olderGateways: 0,
    };
  const [rows, nodes] = await awaitAll<readonly Row[]>([
    sql({
      text: `SELECT version, min_version, contracted::text FROM ${schema}.schema_version ORDER BY version`,
    }),
    sql({
      text: `SELECT count(*) FILTER (WHERE schema_version < ${LATEST_VERSION}) AS older FROM ${schema}.node WHERE state = 'live'`,
    }),
  ]);
  const version = Number(rows!.at(-1)?.["version"] ?? 0);
  const minVersion = Number(rows!.at(-1)?.["min_version"] ?? 0);
  if (version > LATEST_VERSION && minVersion > LATEST_VERSION)
    fail(
      "invalid",
      `The database has schema version ${version}, which requires a gateway of schema version ${minVersion} or later. This gateway has schema version ${LATEST_VERSION}. Upgrade tollgate-store-postgres.`,
      { code: "newer_schema" },
    );
  const done = new Set(
    rows!.filter((row) => row["contracted"] === "true").map((row) => Number(row["version"])),
  );
  return {
    version,
    latest: LATEST_VERSION,
    expand: MIGRATIONS.filter((each) => each.version > version).map((each) => each.version),
    contract: MIGRATIONS.filter(
      (each) => each.contract && each.version <= version && !done.has(each.version),
    ).map((each) => each.version),
    olderGateways: Number(nodes![0]?.["older"] ?? 0),
  };
}

/** Returns the statements that bring the schema to the newest version, without running them. */
export const migrationSql = (
  { version, expand, contract, olderGateways }: SchemaStatus,
  schema: string,
  roles: DatabaseRoles,
): readonly string[] => [
  ...(version === 0 ? [bootstrapSql(schema)] : []),
  ...MIGRATIONS.filter((each) => expand.includes(each.version)).map((each) => each.expand(schema)),
  ...(olderGateways > 0
    ? []
    : MIGRATIONS.filter((each) => contract.includes(each.version)).map((each) =>
        each.contract!(schema),
      )),
  grantsSql(schema, roles),
];

const bootstrapSql = (schema: string): string => `CREATE SCHEMA IF NOT EXISTS ${schema};
CREATE TABLE IF NOT EXISTS ${schema}.schema_version (version int PRIMARY KEY, min_version int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
  contracted boolean NOT NULL DEFAULT false);`;

/**
 * Migrates the schema and returns the versions that were created. One gateway migrates at a time;
 * the others wait for the lock and find that the migration is complete.
 */
export async function migrate(
  sql: RunSql,
  schema: string,
  roles: DatabaseRoles,
): Promise<readonly number[]> {
  for (let tries = 1; ; tries++)
    try {
      return await migrateOnce(sql, schema, roles);
    } catch (error) {
      // If there is no table yet, there is nothing to lock. If two gateways create the schema at
      // the same time, the later gateway fails with one of these errors.
      if (tries === 5 || !isSchemaConflict(error)) throw error;
    }
}

async function migrateOnce(
  sql: RunSql,
  schema: string,
  roles: DatabaseRoles,
): Promise<readonly number[]> {
  await readSchemaStatus(sql, schema);
  const made: number[] = [];
  try {
    await sql({ text: "BEGIN" });
    await sql({ text: "SELECT set_config('lock_timeout', '10000', true)" });
    await sql({ text: bootstrapSql(schema) });
    await sql({ text: `LOCK TABLE ${schema}.schema_version IN EXCLUSIVE MODE` });
    const [row] = await sql({
      text: `SELECT coalesce(max(version), 0) AS version FROM ${schema}.schema_version`,
    });
    for (const { version, minVersion, expand } of MIGRATIONS)
      if (version > Number(row!["version"])) {
        await sql({ text: expand(schema) });
        await sql({
          text: `INSERT INTO ${schema}.schema_version (version, min_version) VALUES ($1, $2)`,
          values: [version, minVersion],
        });
        made.push(version);
      }
    const now = made.length > 0 ? undefined : await readSchemaStatus(sql, schema);
    if (now && now.olderGateways === 0)
      for (const { version, contract } of MIGRATIONS)
        if (contract && now.contract.includes(version)) {
          await sql({ text: contract(schema) });
          await sql({
            text: `UPDATE ${schema}.schema_version SET contracted = true WHERE version = $1`,
            values: [version],
          });
        }
    await sql({ text: grantsSql(schema, roles) });
    await sql({ text: `SELECT ${schema}.create_partitions_1(1)` });
    await sql({ text: "COMMIT" });
    return made;
  } catch (error) {
    await sql({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}

/**
 * Returns the grants. The runtime role can add and read ledger rows, and the reading role can read
 * them. Ledger rows can be changed only by functions of the owner.
 */
function grantsSql(schema: string, { run, read }: DatabaseRoles): string {
  const lines = [`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${schema} FROM PUBLIC;`];
  if (run !== undefined)
    lines.push(
      `GRANT USAGE ON SCHEMA ${schema} TO ${run};`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${run};`,
      `GRANT INSERT ON ${schema}.ledger_row, ${schema}.terms, ${schema}.batch, ${schema}.note, ${schema}.price, ${schema}.shared, ${schema}.erased TO ${run};`,
      `GRANT INSERT, UPDATE ON ${schema}.node, ${schema}.key, ${schema}.account, ${schema}.audit, ${schema}.change_counter TO ${run};`,
      `GRANT INSERT, UPDATE, DELETE ON ${schema}.meter, ${schema}.open_call, ${schema}.job TO ${run};`,
      `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${run};`,
    );
  if (read !== undefined)
    lines.push(
      `GRANT USAGE ON SCHEMA ${schema} TO ${read};`,
      `GRANT SELECT ON ${schema}.entry, ${schema}.ledger_row, ${schema}.terms, ${schema}.batch, ${schema}.open_call, ${schema}.meter, ${schema}.node, ${schema}.schema_version, ${schema}.change_counter, ${schema}.rollup_position, ${ROLLUP_TABLE_NAMES.map((table) => `${schema}.${table}`).join(", ")}, ${schema}.chain, ${schema}.note, ${schema}.key, ${schema}.account, ${schema}.checkpoint, ${schema}.checkpoint_rollup, ${schema}.erased TO ${read};`,
    );
  return lines.join("\n");
}
