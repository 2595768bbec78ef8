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
  summary: "One PostgreSQL for several gateways: one ledger, one budget, exact",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url"],
    properties: {
      url: secretUrlOption(
        "The database, as postgres://user:password@host:5432/database; a password may stand in password_file instead",
      ),
      migrate_url: secretUrlOption(
        "The same database as the schema's owner, for migrations; url when absent",
      ),
      read_url: secretUrlOption("Where reports are asked, such as a replica; url when absent"),
      password_file: fileOption("A file with the password of url, read again for each connection"),
      schema: { ...nameOption("The schema that the tables are in"), default: "tollgate" },
      tls: {
        enum: ["auto", "verify-full", "off"],
        default: "auto",
        description:
          "auto: none on this machine, elsewhere the server has to prove its name. off is for this machine alone",
      },
      ca_file: fileOption(
        "Certificates that the server's is checked against; the system's when absent",
      ),
      cert_file: fileOption("The client's certificate"),
      key_file: fileOption("Its key"),
      pooler: {
        enum: ["none", "transaction"],
        default: "none",
        description:
          "transaction: PgBouncer or its like stands between and shares connections by transaction",
      },
      durability: {
        enum: ["synced", "flushed", "relaxed"],
        default: "flushed",
        description:
          "What an acknowledged row survives. synced and flushed: what the database's synchronous_standby_names promises; flushed gives locks back first. relaxed: neither a crash of the database nor of its machine",
      },
      lease_ms: {
        type: "integer",
        minimum: 3_000,
        maximum: 600_000,
        default: 15_000,
        description:
          "A gateway that is silent for so long is taken for dead, and others settle its calls",
      },
      on_outage: {
        enum: ["reject", "offline_budget"],
        default: "reject",
        description:
          "While the database is away. reject: new calls are rejected. offline_budget: calls of keys with budgets go on within what this gateway has set aside of them, and the database is told afterwards",
      },
      offline_max_ms: {
        type: "integer",
        minimum: 1_000,
        maximum: 86_400_000,
        default: 300_000,
        description:
          "How long a gateway goes on by itself, with keys that it has asked for within that time",
      },
      offline_share: {
        type: "number",
        exclusiveMinimum: 0,
        maximum: 0.5,
        default: 0.02,
        description: "What part of what is left of a budget each gateway sets aside",
      },
      lease_threshold: {
        type: "integer",
        minimum: 0,
        maximum: 10_000,
        default: 8,
        description:
          "A budget that so many gateways draw on within ten seconds is counted in slices, a part of it for each of them. 0: none is",
      },
      migrate: {
        enum: ["auto", "never"],
        default: "auto",
        description: "auto: a start brings the schema to the newest version. never: a command does",
      },
      run_role: nameOption(
        "A role that may do what a gateway does; a migration gives it its rights",
      ),
      read_role: nameOption("A role that may read reports; a migration gives it its rights"),
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
        message: "goes with the other one: cert_file and key_file",
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
