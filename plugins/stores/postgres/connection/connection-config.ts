// Builds the connection settings of a database. Connections that leave the machine are encrypted,
// and the server certificate is verified.
import type { ClientConfig } from "pg";
import type { Problem } from "tollgate/plugin";
import { TEXT_TYPES, SERVER_SILENCE_MS } from "./pipelined-connection.ts";

export interface DatabaseAddress {
  readonly url: string;
  readonly tls: "auto" | "verify-full" | "off";
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly passwordFile?: string | undefined;
  /** Whether a pooler shares connections between clients. Session state must not be set then. */
  readonly isPooled: boolean;
  /** Reads the current content of a file. */
  readFile(path: string): Promise<Buffer>;
}

/** Whether the database is on this machine: a socket folder or a loopback address. */
export function isLocal(url: string): boolean {
  const at = new URL(url);
  const host = at.searchParams.get("host") ?? decodeURIComponent(at.hostname);
  return host === "" || host.startsWith("/") || /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(host);
}

/** Yields the problems of an address. They are reported at `path`. */
export function* addressProblems(
  path: string,
  url: string | undefined,
  tls: DatabaseAddress["tls"],
): Generator<Problem> {
  if (url === undefined || url.includes("${")) return;
  let at: URL;
  try {
    at = new URL(url);
  } catch {
    yield { path, message: "is not a valid URL", hint: "write postgres://user@host:5432/database" };
    return;
  }
  if (!/^postgres(ql)?:$/.test(at.protocol))
    yield {
      path,
      message: "is not a PostgreSQL URL",
      hint: "write postgres://user@host:5432/database",
    };
  else {
    for (const name of at.searchParams.keys())
      if (/^(ssl|options$)/.test(name))
        yield {
          path,
          message: `has the parameter ${name}, which is not allowed in the URL`,
          hint: "use the options tls, ca_file, cert_file, and key_file",
        };
    if (tls === "off" && !isLocal(url))
      yield {
        path: "/tls",
        message:
          "must not be off for a remote database, because the ledger and its password " +
          "would cross the network unencrypted",
      };
  }
}

/**
 * Planner settings. JIT compilation of a query over a year of partitions takes 100 times as long as
 * running it. Merge joins are off because the planner underestimates the cost of sorting a year of
 * rows. Reports should read the rows once and look up small tables.
 */
export const PLANNER_SETTINGS = ["jit=off", "enable_mergejoin=off"] as const;

/**
 * @param within Limits on the run time of a statement and on the server's silence, in milliseconds.
 */
export async function connectionConfig(
  of: DatabaseAddress,
  within: { statementMs: number; silenceMs?: number },
): Promise<ClientConfig> {
  const { url, tls, ca, cert, key, passwordFile, isPooled, readFile } = of;
  const plain = tls === "off" || (tls === "auto" && isLocal(url));
  const [caPem, certPem, keyPem] = await Promise.all(
    [ca, cert, key].map(async (path) =>
      path === undefined || plain ? undefined : (await readFile(path)).toString(),
    ),
  );
  const { statementMs, silenceMs = SERVER_SILENCE_MS } = within;
  return {
    connectionString: await withPassword(url, passwordFile, readFile),
    types: TEXT_TYPES,
    application_name: "tollgate",
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    connectionTimeoutMillis: 3_000,
    query_timeout: silenceMs,
    ssl: plain
      ? false
      : {
          rejectUnauthorized: true,
          ...(caPem && { ca: caPem }),
          ...(certPem && { cert: certPem }),
          ...(keyPem && { key: keyPem }),
        },
    // Poolers reject connection parameters that would become part of the session state.
    ...(!isPooled && {
      statement_timeout: statementMs,
      lock_timeout: 700,
      // Long tasks, such as a migration, may pause between their statements.
      idle_in_transaction_session_timeout: Math.min(statementMs, 30_000),
      options: PLANNER_SETTINGS.map((setting) => `-c ${setting}`).join(" "),
    }),
  };
}

/**
 * Adds the password to the URL, because the driver prefers the URL over other settings. The file is
 * read again for each connection, so that the password can be changed.
 */
async function withPassword(
  url: string,
  file: string | undefined,
  read: DatabaseAddress["readFile"],
): Promise<string> {
  if (file === undefined) return url;
  const at = new URL(url);
  at.password = encodeURIComponent((await read(file)).toString().trimEnd());
  return at.href;
}
