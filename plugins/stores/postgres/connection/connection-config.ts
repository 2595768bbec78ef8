// How the database is reached: the address, and what is behind it. A connection that leaves the machine is encrypted, and the server proves its name.
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
  /** Behind it connections are shared: nothing is said that would stay with one. */
  readonly isPooled: boolean;
  /** A file, as it is now. */
  readFile(path: string): Promise<Buffer>;
}

/** On this machine: a socket's folder, or a loopback address. */
export function isLocal(url: string): boolean {
  const at = new URL(url);
  const host = at.searchParams.get("host") ?? decodeURIComponent(at.hostname);
  return host === "" || host.startsWith("/") || /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(host);
}

/** What is wrong with an address, at `path`. */
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
    yield { path, message: "is no address", hint: "write postgres://user@host:5432/database" };
    return;
  }
  if (!/^postgres(ql)?:$/.test(at.protocol))
    yield {
      path,
      message: "is no address of PostgreSQL",
      hint: "write postgres://user@host:5432/database",
    };
  else {
    for (const name of at.searchParams.keys())
      if (/^(ssl|options$)/.test(name))
        yield {
          path,
          message: `has ${name}, which is not said there`,
          hint: "use tls, ca_file, cert_file, key_file",
        };
    if (tls === "off" && !isLocal(url))
      yield {
        path: "/tls",
        message:
          "may be off on this machine alone: the ledger and its password would cross the network unencrypted",
      };
  }
}

/**
 * To compile what looks at a year of partitions takes a hundred times as long as to look. And what reports add up is read once and looked up in
 * what is small: to put a year of rows in order for it is taken for cheaper than it is.
 */
export const PLANNER_SETTINGS = ["jit=off", "enable_mergejoin=off"] as const;

/** `within`: how long a statement may take, and how long the server may be silent. */
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
    // A pooler refuses what it would have to remember for a connection.
    ...(!isPooled && {
      statement_timeout: statementMs,
      lock_timeout: 700,
      idle_in_transaction_session_timeout: 2_000,
      options: PLANNER_SETTINGS.map((setting) => `-c ${setting}`).join(" "),
    }),
  };
}

/** It is read for each connection, so that it can be changed; what the driver finds in the address goes before all else that it is told. */
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
