// The `listen` section: one address for clients or a list of them. Contains the checks that a
// schema cannot express.
import { dirname, resolve } from "node:path";
import type { ListenConfig } from "./network-config.ts";
import { problem } from "../problems.ts";
import { closedObject, flag, list, nonEmptyText } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping } from "../source/config-tree.ts";

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8787;
/** Only the owner has access, as for the state directory. */
const DEFAULT_SOCKET_MODE = "0600";

const CLIENT_CERTIFICATES_SCHEMA = closedObject(
  {
    ca: nonEmptyText("A file with the authorities that sign clients' certificates, as PEM"),
    required: flag("A client without such a certificate is not spoken to", false),
  },
  {
    required: ["ca"],
    description: "Clients are asked for a certificate; `client-certificates` says what each may do",
  },
);

const TLS_SCHEMA = closedObject(
  {
    cert: nonEmptyText("A file with the certificate and those that it follows from, as PEM"),
    key: nonEmptyText("A file with its private key, as PEM"),
    min_version: {
      enum: ["1.2", "1.3"],
      description: "The oldest version of TLS that is spoken; 1.2 by default",
    },
    client_certificates: CLIENT_CERTIFICATES_SCHEMA,
  },
  {
    required: ["cert", "key"],
    description:
      "It speaks https. Paths are relative to this file, and files that change are taken in at once",
  },
);

const ADDRESS_PROPERTIES = {
  host: nonEmptyText(`${DEFAULT_HOST}, the default: this machine only. 0.0.0.0: every machine`),
  port: {
    type: "integer",
    minimum: 0,
    maximum: 65_535,
    description: `${DEFAULT_PORT} by default; 0: any free one`,
  },
  socket: nonEmptyText("A unix socket in place of host and port, relative to this file"),
  mode: {
    type: "string",
    pattern: "^0?[0-7]{3}$",
    "x-expects": 'rights such as "0660", in quotes',
    description: `Rights of the socket; ${DEFAULT_SOCKET_MODE} by default`,
  },
  tls: TLS_SCHEMA,
  hosts: list({ type: "string", minLength: 1 }, "More names in a Host header that mean us"),
  origins: list(
    {
      type: "string",
      pattern: "^https?://[^/\\s]+$",
      "x-expects": "an origin such as https://app.example",
    },
    "Web pages that may call us from a browser",
  ),
};

export const LISTEN_SCHEMA = {
  if: { type: "array" },
  then: { type: "array", minItems: 1, maxItems: 16, items: closedObject(ADDRESS_PROPERTIES) },
  else: closedObject(ADDRESS_PROPERTIES),
  default: {},
  description: "Where clients reach us: an address, or a list of them. A change needs a restart",
};

export function checkListen(raw: unknown, report: ReportProblem): void {
  const seenAddresses = new Map<string, string>();
  for (const [pointer, each] of listListenEntries(raw)) {
    if (!isMapping(each)) continue;
    const { socket, host = DEFAULT_HOST, port = DEFAULT_PORT } = each;
    for (const key of ["host", "port", "tls"])
      if (socket !== undefined && each[key] !== undefined)
        report(problem.notAllowedWithSocket(key), childPointer(pointer, key), "key");
    if (socket === undefined && each["mode"] !== undefined)
      report(problem.modeWithoutSocket(), childPointer(pointer, "mode"), "key");
    const at = socket === undefined ? `${String(host)}:${String(port)}` : String(socket);
    if (seenAddresses.has(at) && port !== 0) report(problem.sameListener(at), pointer);
    seenAddresses.set(at, pointer);
  }
}

const listListenEntries = (raw: unknown): readonly (readonly [pointer: string, said: unknown])[] =>
  Array.isArray(raw)
    ? raw.map((each, i) => [childPointer("/listen", String(i)), each] as const)
    : [["/listen", raw]];

/**
 * Converts the section.
 * @param from File that contains the section.
 * @param overrides Values of the command line, which replace those of the first listener that is
 *   not a socket.
 */
export function toListenConfigs(
  raw: any,
  from: string,
  overrides: { readonly host?: string | undefined; readonly port?: number | undefined },
): readonly ListenConfig[] {
  const file = (path: string) => resolve(dirname(from), path);
  let first = true;
  return [raw ?? {}].flat().map((each: any) => {
    const override = each.socket === undefined && first ? overrides : {};
    if (each.socket === undefined) first = false;
    const { tls } = each;
    return {
      host: override.host ?? each.host ?? DEFAULT_HOST,
      port: override.port ?? each.port ?? DEFAULT_PORT,
      socket: each.socket === undefined ? undefined : file(each.socket),
      mode: each.socket === undefined ? undefined : (each.mode ?? DEFAULT_SOCKET_MODE),
      tls: tls && {
        cert: file(tls.cert),
        key: file(tls.key),
        minVersion: tls.min_version === "1.3" ? ("TLSv1.3" as const) : ("TLSv1.2" as const),
        clientCertificates: tls.client_certificates && {
          ca: file(tls.client_certificates.ca),
          required: tls.client_certificates.required ?? false,
        },
      },
      hosts: each.hosts ?? [],
      origins: each.origins ?? [],
    };
  });
}

/** Returns the listeners for display. A single address is not shown as a list. */
export function formatListen(all: readonly ListenConfig[]): unknown {
  const views = all.map(({ host, port, socket, mode, tls, hosts, origins }) => ({
    ...(socket === undefined ? { host, port } : { socket, mode }),
    tls: tls && {
      cert: tls.cert,
      key: tls.key,
      min_version: tls.minVersion.slice("TLSv".length),
      client_certificates: tls.clientCertificates,
    },
    hosts,
    origins,
  }));
  return views.length === 1 ? views[0] : views;
}
