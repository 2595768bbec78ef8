// Operator commands for the schema, the hash chain, and budget leases.
import { fail, type Commands } from "tollgate/plugin";
import {
  migrate,
  readSchemaStatus,
  migrationSql,
  type DatabaseRoles,
} from "./schema/migrations.ts";
import type { RunSql } from "./connection/pipelined-connection.ts";
import { returnLeases } from "./membership/lease-returns.ts";

type RunAsOwner = <T>(work: (ask: RunSql) => Promise<T>) => Promise<T>;

const SCHEMA_STATUS = {
  type: "object",
  required: ["version", "latest", "expand", "contract", "olderGateways"],
  properties: {
    version: { type: "integer", description: "Schema version of the database. 0: no schema" },
    latest: { type: "integer", description: "Newest schema version of this gateway" },
    expand: {
      type: "array",
      items: { type: "integer" },
      description: "Schema versions to apply",
    },
    contract: {
      type: "array",
      items: { type: "integer" },
      description: "Schema versions whose objects for older gateways still exist",
    },
    olderGateways: { type: "integer", description: "Running gateways of an older schema version" },
  },
} as const;

export const createSchemaCommands = (
  schema: string,
  roles: DatabaseRoles,
  asOwner: RunAsOwner,
): NonNullable<Commands["commands"]> => ({
  status: {
    summary: "Show the schema versions of the database and this gateway",
    role: "viewer",
    writes: false,
    runsBeforeOpen: true,
    output: SCHEMA_STATUS,
    run: async () => ({ ...(await asOwner((sql) => readSchemaStatus(sql, schema))) }),
  },
  plan: {
    summary: "Show the SQL statements that `migrate` would run",
    role: "operator",
    writes: false,
    runsBeforeOpen: true,
    output: {
      type: "object",
      required: ["statements"],
      properties: { statements: { type: "array", items: { type: "string" } } },
    },
    run: async () => ({
      statements: [
        ...(await asOwner(async (sql) =>
          migrationSql(await readSchemaStatus(sql, schema), schema, roles),
        )),
      ],
    }),
  },
  release: {
    summary: "Release the budget leases of a gateway whose disk is lost",
    role: "owner",
    writes: true,
    runsBeforeOpen: true,
    input: {
      type: "object",
      additionalProperties: false,
      required: ["gateway"],
      properties: {
        gateway: {
          type: "string",
          minLength: 1,
          description: "ID of the gateway, or a prefix of it, as `tollgate fleet` shows it",
        },
      },
    },
    output: {
      type: "object",
      required: ["slices"],
      properties: { slices: { type: "integer", description: "Number of released budget leases" } },
    },
    run: async ({ gateway }) => ({
      slices: await asOwner((sql) => releaseBudgetLeases(sql, schema, String(gateway))),
    }),
  },
  migrate: {
    summary: "Migrate the database to the newest schema version",
    role: "owner",
    writes: true,
    runsBeforeOpen: true,
    output: {
      type: "object",
      required: ["made"],
      properties: { made: { type: "array", items: { type: "integer" } } },
    },
    run: async () => ({ made: [...(await asOwner((sql) => migrate(sql, schema, roles)))] }),
  },
});

/** Commands with which an operator can detect that the ledger was truncated. */
export const createChainCommands = (
  sql: RunSql,
  schema: string,
  numbered: () => Promise<void>,
): NonNullable<Commands["commands"]> => ({
  head: {
    summary: "Show the ledger's latest hash, to detect truncation later",
    writes: false,
    output: {
      type: "object",
      required: ["seq", "hash"],
      properties: { seq: { type: "integer" }, hash: { type: "string" } },
    },
    async run() {
      await numbered();
      const [row] = await sql({
        text: `SELECT next_seq - 1 AS seq, encode(head, 'hex') AS hash FROM ${schema}.chain`,
      });
      return { seq: Number(row!["seq"]), hash: row!["hash"]! };
    },
  },
  contains: {
    summary: "Verify that a recorded hash is still part of the ledger",
    writes: false,
    input: {
      type: "object",
      additionalProperties: false,
      required: ["hash"],
      properties: { hash: { type: "string", description: "From `head`" } },
    },
    output: { type: "boolean" },
    async run({ hash }) {
      if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash)) return hash === "";
      const [row] = await sql({
        text: `SELECT (EXISTS (SELECT 1 FROM ${schema}.batch WHERE chain_hash = decode($1, 'hex'))
          OR EXISTS (SELECT 1 FROM ${schema}.checkpoint WHERE text::json ->> 'link' = $1)
          OR EXISTS (SELECT 1 FROM ${schema}.note WHERE kind = 'imported' AND id = $1))::text AS contains`,
        values: [hash],
      });
      return row!["contains"] === "true";
    },
  },
});

/**
 * Returns the budget leases of a dead gateway. A live gateway may be spending its leases at this
 * moment, so it is rejected.
 */
async function releaseBudgetLeases(sql: RunSql, schema: string, node: string): Promise<number> {
  const [found, another] = await sql({
    text: `SELECT id, bool_or(state = 'live')::text AS lives FROM ${schema}.node WHERE starts_with(id, $1)
      GROUP BY id ORDER BY id <> $1, id LIMIT 2`,
    values: [node],
  });
  if (!found) return fail("not_found", `Unknown gateway ID "${node}".`, { code: "no_gateway" });
  const id = found["id"]!;
  if (another && id !== node)
    return fail("conflict", `The gateway ID "${node}" is ambiguous. Use a longer prefix.`, {
      code: "not_one",
    });
  if (found["lives"] === "true")
    fail("conflict", `The gateway ${id} is running and releases its budget leases itself.`, {
      code: "lives",
    });
  return (await returnLeases(sql, schema, id)).length;
}
