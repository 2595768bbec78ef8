// Keeps one ledger for several gateways in PostgreSQL. Importing this file starts nothing; a
// connection is made when the store is opened.
import { defineStore, type Store } from "tollgate/plugin";
import { addressProblems, type DatabaseAddress } from "./connection/connection-config.ts";
import { createPostgresStore } from "./store.ts";

const secretUrlOption = (description: string) =>
  ({ type: "string", minLength: 1, "x-secret": true, description }) as const;
const fileOption = (description: string) =>
  ({ type: "string", minLength: 1, description }) as const;
const nameOption = (description: string) =>
  ({ type: "string", pattern: "^[a-z_][a-z0-9_]{0,40}$", description }) as const;

export default defineStore({
  api: 1,
  name: "postgres",
  stability: "beta",
  summary: "Share one ledger and exact budgets in PostgreSQL",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url"],
    properties: {
      url: secretUrlOption(
        "Database URL, such as postgres://user:password@host:5432/database. The password " +
          "can be in password_file instead",
      ),
      migrate_url: secretUrlOption(
        "URL of the same database with the role of the schema owner, for migrations. " +
          "Default: url",
      ),
      read_url: secretUrlOption("URL for reports, such as that of a replica. Default: url"),
      password_file: fileOption(
        "File with the password for url. The file is read again for each connection",
      ),
      schema: { ...nameOption("Schema of the tables"), default: "tollgate" },
      tls: {
        enum: ["auto", "verify-full", "off"],
        default: "auto",
        description:
          "TLS mode. auto: no TLS on this machine; elsewhere TLS with a verified server " +
          "certificate. off: no TLS, allowed on this machine only",
      },
      ca_file: fileOption(
        "CA certificates for the server certificate. Default: the system's CA certificates",
      ),
      cert_file: fileOption("Client certificate"),
      key_file: fileOption("Private key of the client certificate"),
      pooler: {
        enum: ["none", "transaction"],
        default: "none",
        description:
          "Pooling mode. transaction: a pooler such as PgBouncer shares connections by " +
          "transaction",
      },
      durability: {
        enum: ["synced", "flushed", "relaxed"],
        default: "flushed",
        description:
          "Durability of acknowledged rows. synced: as synchronous_standby_names of the database promises. flushed: the same, with locks released earlier. relaxed: a database crash can lose rows",
      },
      lease_ms: {
        type: "integer",
        minimum: 3_000,
        maximum: 600_000,
        default: 15_000,
        description:
          "Time without a heartbeat, in milliseconds, after which a gateway's lease " +
          "expires and other gateways settle its calls",
      },
      on_outage: {
        enum: ["reject", "offline_budget"],
        default: "reject",
        description:
          "Behavior while the database is unreachable. reject: new calls are rejected. " +
          "offline_budget: keys with budgets can spend the budget leases of this gateway, and the database is updated later",
      },
      offline_max_ms: {
        type: "integer",
        minimum: 1_000,
        maximum: 86_400_000,
        default: 300_000,
        description:
          "Maximum time in offline mode, in milliseconds. Only keys used within this time " +
          "before the outage are accepted",
      },
      offline_share: {
        type: "number",
        exclusiveMinimum: 0,
        maximum: 0.5,
        default: 0.02,
        description:
          "Share of a budget's remaining amount that each gateway leases for offline mode",
      },
      lease_threshold: {
        type: "integer",
        minimum: 0,
        maximum: 10_000,
        default: 8,
        description:
          "Number of gateways that must charge a budget within 10 seconds before it is " +
          "divided into budget leases, one per gateway. 0: no budget is divided",
      },
      migrate: {
        enum: ["auto", "never"],
        default: "auto",
        description:
          "Schema migration. auto: the gateway migrates the schema at startup. never: only " +
          "`tollgate store migrate` does",
      },
      run_role: nameOption("Role with the rights of a gateway. Migrations grant these rights"),
      read_role: nameOption("Role that can read reports. Migrations grant these rights"),
    },
  },
  needs: {
    files: ({ ca_file, cert_file, key_file, password_file }) =>
      [ca_file, cert_file, key_file, password_file].filter((path) => path !== undefined),
  },
  *check({ url, migrate_url, read_url, tls, cert_file, key_file }) {
    yield* addressProblems("/url", url, tls);
    yield* addressProblems("/migrate_url", migrate_url, tls);
    yield* addressProblems("/read_url", read_url, tls);
    if ((cert_file === undefined) !== (key_file === undefined))
      yield {
        path: cert_file === undefined ? "/key_file" : "/cert_file",
        message: "requires the other option: set both cert_file and key_file",
      };
  },
  setup(options, ctx): Store {
    const address = (url: string, passwordFile?: string): DatabaseAddress => ({
      url,
      tls: options.tls,
      ca: options.ca_file,
      cert: options.cert_file,
      key: options.key_file,
      passwordFile,
      isPooled: options.pooler === "transaction",
      readFile: (path) => ctx.readFile(path),
    });
    const own = address(options.url, options.password_file);
    const store = createPostgresStore({
      address: own,
      ownerAddress: options.migrate_url === undefined ? own : address(options.migrate_url),
      reportAddress: options.read_url === undefined ? own : address(options.read_url),
      schema: options.schema,
      durability: options.durability,
      leaseMs: options.lease_ms,
      offline:
        options.on_outage === "offline_budget"
          ? { maxMs: options.offline_max_ms, share: options.offline_share }
          : undefined,
      leaseThreshold: options.lease_threshold,
      spoolDir: () => ctx.stateDir(),
      clock: "database",
      migratesOnStart: options.migrate === "auto",
      roles: { run: options.run_role, read: options.read_role },
    });
    ctx.onDispose(() => store.close());
    return store;
  },
});
